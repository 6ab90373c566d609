"""Quality and progress of a campaign, from the records' histories alone: Krippendorff's alpha, shares with Wilson's
interval, planted errors, which measure what a cross-check really detects, and the effect of pre-annotations."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from statistics import fmean, median
from typing import Any, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import CHECKING
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality import progress
from darkroom.annotation.quality.agreement import Agreement, PanelAgreement, alpha, mean_iou, measure_panels
from darkroom.annotation.quality.annotators import BREAK_SECONDS, AnnotatorQuality, by_frequency, measure_annotators
from darkroom.annotation.quality.outliers import Period, find_drifts, find_outliers, periods
from darkroom.annotation.quality.versions import Version, measured_cases, share_of, versions
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState, Stage
from darkroom.pipelines.records import FieldChange
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.verification.proportion import Proportion, proportion_of


class Median(NamedTuple):
    """A median of ``of`` values; None of fewer than six, which do not enclose it at 95 %."""

    value: float | None
    interval: tuple[float, float]
    of: int


class PreAnnotationEffect(NamedTuple):
    """One figure of both parts; ``difference`` is shown minus withheld with its interval, None without cases."""

    measure: str
    shown: Proportion | Median
    withheld: Proportion | Median
    difference: tuple[float, float, float] | None


def measure_effects(states: Sequence[RecordState]) -> tuple[PreAnnotationEffect, ...]:
    """Effect of pre-annotations that the campaign's seed gives to a part of the images; empty unless both parts have
    some. Intervals at 95 %: Wilson's of a share, by order statistics of a median, of a difference from both (Newcombe,
    1998, method 10; Zou, Donner, 2008)."""
    parts = [[state for state in states if state.pre_annotation == use] for use in ("shown", "withheld")]
    if not all(parts):
        return ()
    with_help, without = map(_figures, parts)
    pairs = [(name, figure, without[name]) for name, figure in with_help.items()]
    return tuple(PreAnnotationEffect(*pair, difference(*pair[1:])) for pair in pairs)


def _figures(states: Sequence[RecordState]) -> dict[str, Proportion | Median]:
    firsts = [first for state in states if (first := next(versions(state), None)) and not first.author.attempt]
    leads = [min(s, BREAK_SECONDS) for first in firsts if (s := first.author.lead_seconds) is not None]
    settled = [first for first in firsts if first.outcome != "waiting"]
    blind = [check.blind_match for first in firsts for check in first.cross_checks]
    return {
        "seconds": median_of(leads),
        "first_pass": proportion_of(first.outcome == "unchanged" for first in settled),
        "accepted": proportion_of(state.stage == "accepted" for state in states if state.stage != "waiting"),
        "rejected": proportion_of(first.outcome == "rejected" for first in settled),
        "escaped": proportion_of(first.expert_verdict == "reject" for first in firsts if first.expert_verdict),
        "blind": proportion_of(matched for matched in blind if matched is not None),
    }


def median_of(values: Sequence[float]) -> Median:
    ordered, n = sorted(values), len(values)
    if n < 6:
        return Median(None, (0.0, math.inf), n)
    rank = max(1, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return Median(median(ordered), (ordered[rank - 1], ordered[-rank]), n)


def difference(a: Proportion | Median, b: Proportion | Median) -> tuple[float, float, float] | None:
    if a.value is None or b.value is None:
        return None
    (a_low, a_high), (b_low, b_high), gap = a.interval, b.interval, a.value - b.value
    down, up = math.hypot(a.value - a_low, b_high - b.value), math.hypot(a_high - a.value, b.value - b_low)
    return gap, gap - down, gap + up


class Skipped(NamedTuple):
    """An item that several people skipped."""

    item_id: str
    people: tuple[str, ...]
    stage: Stage


class CategoryMix(NamedTuple):
    """Records of one category; ``blind`` is the share of blind answers that matched."""

    category: str
    n_written: int
    n_accepted: int
    blind: Proportion
    disputed: Proportion
    """Of checks and acceptances, those that fixed or rejected."""


@dataclass(frozen=True, slots=True)
class Quality:
    """A campaign at one moment."""

    n_items: int
    until: str
    """Time of the last submission, ISO 8601; empty before the first."""
    funnel: Mapping[str, int]
    waiting: Mapping[str, int]
    n_accepted: int
    n_rejected: int
    n_reworked: int
    """Items sent back at least once."""
    minutes_per_accepted: float | None
    """Working time of all rounds, rejected work included; an open page counts half an hour at most."""
    blind: Proportion
    verdicts: Agreement | None
    """Checker and expert on the author's version; None where alpha is undefined."""
    confusion: Mapping[tuple[str, str], int]
    """Versions by (checker's verdict, expert's verdict on the author's version)."""
    escaped: Proportion
    """Of versions that the cross-check passed, those that experts rejected."""
    panels: tuple[PanelAgreement, ...]
    """Agreement of several experts, and of two checkers; empty where one person judges."""
    first_pass: Proportion
    """Of first versions with finished checks, those accepted as written."""
    box_iou: float | None
    """Mean one-to-one overlap of boxes before and after, over checks that moved boxes."""
    boxes_kept: Proportion
    """Of checks that did not reject, those that left the boxes unchanged."""
    planted_errors: Mapping[str, Proportion]
    people: tuple[AnnotatorQuality, ...]
    reasons: Mapping[str, Mapping[str, int]]
    """Why records were rejected, by reason, then by round; most frequent first."""
    invalid: Mapping[str, int]
    blocked: Mapping[str, int]
    """Errors of submissions that the server blocked, without their numbers."""
    categories: tuple[CategoryMix, ...]
    recategorised: Mapping[tuple[str, str], int]
    """How often a check changed the category: (before, after)."""
    days: Mapping[str, Mapping[str, int]]
    """Valid submissions by day (UTC), then by round."""
    periods: tuple[Period, ...]
    skipped: tuple[Skipped, ...]
    pre_annotations: tuple[PreAnnotationEffect, ...]
    as_of: str
    """Time of the last sync, or of the last submission; ISO 8601."""
    queues: tuple[progress.WaitingRecords, ...]
    forecast: progress.EndForecast | None
    cost: progress.Cost | None
    findings: tuple[progress.CampaignFinding, ...]

    @property
    def planted_errors_caught(self) -> Proportion:
        shares = self.planted_errors.values()
        return Proportion(sum(share.n for share in shares), sum(share.of for share in shares))

    @property
    def n_waiting(self) -> int:
        return sum(self.waiting.values())


def measure(
    states: Sequence[RecordState],
    *,
    blocked: Sequence[Mapping[str, Any]] = (),
    people: Iterable[Person] = (),
    campaign: Campaign | None = None,
    as_of: str = "",
) -> Quality:
    """The figures of a campaign; ``blocked`` is the server's log, ``people`` are the accounts, begun or not."""
    of_item = [list(versions(state)) for state in states]
    all_versions = [version for item_versions in of_item for version in item_versions]
    events = [event for state in states for event in state.history if event.verdict != "void"]
    accounts, campaign = list(people), campaign or Campaign()
    until = max((event.at for event in events), default="")
    as_of = as_of or until
    annotators = measure_annotators(states, blocked=blocked, people=accounts)
    queues = tuple(progress.queues_of(states, accounts, campaign))
    checks = [event for event in events if event.round in CHECKING]
    minutes = sum(min(e.lead_seconds or 0.0, BREAK_SECONDS) for state in states for e in state.history) / 60
    rounds_of = by_key((event.at[:10], event.round) for event in events if event.at)
    accepted = [state for state in states if state.stage == "accepted"]
    cases = list(measured_cases(states))
    caught = by_key((check.error, check.caught) for state in states for check in state.planted_checks)
    judged = [(check.verdict, v.expert_verdict) for v in all_versions if v.expert_verdict for check in v.cross_checks]
    changes = [change for check in checks for change in check.changes]
    return Quality(
        n_items=len(states),
        until=until,
        funnel={
            "images": len(states),
            "written": sum(map(bool, of_item)),
            "cross-checked": sum(any(version.has_passed for version in item_versions) for item_versions in of_item),
            "accepted": len(accepted),
        },
        waiting={name: sum(s.stage == "waiting" and s.round == name for s in states) for name in ROUNDS},
        n_accepted=len(accepted),
        n_rejected=sum(state.stage == "rejected" for state in states),
        n_reworked=sum(state.attempt > 0 for state in states),
        minutes_per_accepted=minutes / len(accepted) if accepted else None,
        blind=share_of(cases, "blind"),
        verdicts=alpha(judged),
        confusion=dict(sorted(Counter(judged).items())),
        escaped=proportion_of(v.expert_verdict == "reject" for v in all_versions if v.expert_verdict),
        panels=measure_panels(states),
        first_pass=share_of(cases, "first_pass"),
        box_iou=_box_iou(change for change in changes if change.name == "boxes"),
        boxes_kept=proportion_of(
            all(change.name != "boxes" for change in event.changes) for event in checks if event.verdict != "reject"
        ),
        planted_errors={error: proportion_of(caught[error]) for error in sorted(caught)},
        people=annotators,
        reasons=_reasons(all_versions),
        invalid=by_frequency(Counter(entry.reason.value for state in states for entry in state.invalid)),
        blocked=by_frequency(Counter(_without_numbers(text) for entry in blocked for text in entry["problems"])),
        categories=_categories(states),
        recategorised=dict(Counter((c.before, c.after) for c in changes if c.name == "category").most_common()),
        days={day: {name: rounds_of[day].count(name) for name in ROUNDS} for day in sorted(rounds_of)},
        periods=periods(states),
        skipped=_skipped(states),
        pre_annotations=measure_effects(states),
        as_of=as_of,
        queues=queues,
        forecast=progress.forecast(states, as_of),
        cost=progress.cost_of(states, accounts, campaign),
        findings=(
            *progress.queue_findings(queues, as_of),
            *progress.people_findings(states, queues, blocked, as_of),
            *progress.quality_findings(find_outliers(annotators), find_drifts(states)),
        ),
    )


def _box_iou(moves: Iterable[FieldChange]) -> float | None:
    pairs = ([list(starmap(Box, json.loads(text))) for text in (move.before, move.after)] for move in moves)
    defined = [overlap for before, after in pairs if (overlap := mean_iou(before, after)) is not None]
    return fmean(defined) if defined else None


def _reasons(all_versions: Iterable[Version]) -> dict[str, dict[str, int]]:
    rounds = by_key((reason, round) for version in all_versions for round, reason in version.reject_reasons)
    totals = by_frequency(Counter({reason: len(rounds[reason]) for reason in rounds}))
    return {reason: {name: rounds[reason].count(name) for name in CHECKING} for reason in totals}


def _without_numbers(text: str) -> str:
    """So that ``Box 2 covers 7.31 % of …`` and ``Box 1 covers 9 % of …`` count as one error."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?( (?=%))?", "…", text)).strip()


def _categories(states: Sequence[RecordState]) -> tuple[CategoryMix, ...]:
    rows = []
    for category, members in by_key((state.fields.category, state) for state in states if state.fields).items():
        events = [event for state in members for event in state.history]
        n_accepted = sum(state.stage == "accepted" for state in members)
        blind = proportion_of(e.blind_match for e in events if e.blind_match is not None)
        checks = (e for e in events if e.round in CHECKING and e.verdict != "void")
        disputed = proportion_of(check.verdict != "accept" for check in checks)
        rows.append(CategoryMix(category, len(members), n_accepted, blind, disputed))
    return tuple(sorted(rows, key=lambda row: (-row.n_written, row.category)))


def _skipped(states: Sequence[RecordState]) -> tuple[Skipped, ...]:
    rows = [Skipped(state.item_id, tuple(sorted(set(state.skipped_by))), state.stage) for state in states]
    return tuple(sorted([row for row in rows if len(row.people) > 1], key=lambda row: (-len(row.people), row.item_id)))
