"""How good a campaign's work is, and how far it has come: figures from the records' histories alone.

Two people saying the same proves little where there is one thing to say; so agreement comes as Krippendorff's alpha,
shares with Wilson's interval, and errors that were planted say what a cross-check really sees.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from annotation.agreement import Agreement, alpha
from annotation.journal import Person
from annotation.matching import mean_iou
from annotation.people import BREAK_SECONDS, PersonQuality, by_frequency, people_of, reasons_of
from annotation.rounds import ROUNDS, State
from annotation.versions import CHECKING, Version, versions
from pipelines.geometry import Box
from pipelines.records import AnnotationEvent
from pipelines.shares import Share, share_of

N_SKIPS = 2
"""People from whose skipping on an item is listed."""


class Step(NamedTuple):
    """How many items came this far."""

    name: str
    n: int


class Skipped(NamedTuple):
    """An item that several people did not want, and who."""

    item_id: str
    people: tuple[str, ...]
    stage: str
    """``waiting``, ``accepted`` or ``rejected``."""


class CategoryMix(NamedTuple):
    """Records of one category: all that were written, those accepted, and how often a blind answer matched."""

    category: str
    n_written: int
    n_accepted: int
    blind: Share


class Day(NamedTuple):
    """Submissions that count, by round, on one day (UTC)."""

    date: str
    by_round: Mapping[str, int]

    @property
    def n(self) -> int:
        """Of all rounds."""
        return sum(self.by_round.values())


@dataclass(frozen=True, slots=True)
class Quality:
    """A campaign at one moment."""

    n_items: int
    until: str
    """When the last submission came in, ISO 8601; empty before the first."""
    funnel: tuple[Step, ...]
    waiting: Mapping[str, int]
    """Items by the round that they wait in."""
    n_accepted: int
    n_rejected: int
    n_reworked: int
    """Items that went back at least once."""
    minutes_per_accepted: float | None
    """Of people's time, all rounds and all that was in vain included; a page left open counts half an hour at most."""
    blind: Share
    """Blind answers that are the record's answer."""
    verdicts: Agreement | None
    """Checker and expert on the author's version; None where alpha is not defined."""
    confusion: Mapping[tuple[str, str], int]
    """Versions by (checker's verdict, expert's verdict on the author's version)."""
    escaped: Share
    """Of versions that a checker passed on, those that an expert rejected."""
    first_pass: Share
    """Of first versions whose checks are done, those accepted as their author wrote them."""
    box_iou: float | None
    """Mean one-to-one overlap of boxes before and after, over the checks that moved some."""
    boxes_kept: Share
    """Of checks that did not reject, those that left the boxes alone."""
    golds: Mapping[str, Share]
    """Planted errors that were caught, by kind."""
    people: tuple[PersonQuality, ...]
    reasons: Mapping[str, Mapping[str, int]]
    """Why records were rejected, by reason, then by round; most frequent first."""
    refused: Mapping[str, int]
    """Submissions that do not count, by reason."""
    gate: Mapping[str, int]
    """What the gate refused, by problem, numbers left out."""
    categories: tuple[CategoryMix, ...]
    days: tuple[Day, ...]
    skipped: tuple[Skipped, ...]

    @property
    def golds_caught(self) -> Share:
        """Over all kinds of errors."""
        return Share(sum(share.n for share in self.golds.values()), sum(share.of for share in self.golds.values()))

    @property
    def n_waiting(self) -> int:
        """Items that are not settled."""
        return sum(self.waiting.values())


def measure(
    states: Sequence[State], *, hits: Sequence[Mapping[str, Any]] = (), people: Iterable[Person] = ()
) -> Quality:
    """The figures of a campaign.

    ``hits`` is what the gate refused (``person``, ``task_id``, ``problems``, ``at``), ``people`` the accounts, for
    names, roles, and rows of those who have not begun.
    """
    of_item = [list(versions(state)) for state in states]
    all_versions = [version for found in of_item for version in found]
    events = [event for state in states for event in state.history if event.verdict != "void"]
    checks = [event for event in events if event.round in CHECKING]
    accepted = [state for state in states if state.stage == "accepted"]
    first = [one.outcome for one in all_versions if one.author.attempt == 0 and one.outcome != "waiting"]
    judged = [(one.check.verdict, one.expert_verdict) for one in all_versions if one.check and one.expert_verdict]
    return Quality(
        n_items=len(states),
        until=max((event.at for event in events), default=""),
        funnel=_funnel(len(states), of_item, len(accepted)),
        waiting={name: sum(one.stage == "waiting" and one.round == name for one in states) for name in ROUNDS},
        n_accepted=len(accepted),
        n_rejected=sum(state.stage == "rejected" for state in states),
        n_reworked=sum(state.attempt > 0 for state in states),
        minutes_per_accepted=_minutes(states) / len(accepted) if accepted else None,
        blind=share_of(event.blind_match for event in checks if event.blind_match is not None),
        verdicts=alpha(judged),
        confusion=dict(sorted(Counter(judged).items())),
        escaped=share_of(one.acceptance.verdict == "reject" for one in all_versions if one.acceptance),
        first_pass=share_of(outcome == "unchanged" for outcome in first),
        box_iou=_box_iou(checks),
        boxes_kept=share_of(not _moves(event) for event in checks if event.verdict != "reject"),
        golds=_golds(states),
        people=people_of(states, hits=hits, people=people),
        reasons=_reasons(all_versions),
        refused=by_frequency(Counter(one.reason.value for state in states for one in state.refused)),
        gate=by_frequency(Counter(_problem(text) for hit in hits for text in hit["problems"])),
        categories=_categories(states),
        days=_days(events),
        skipped=_skipped(states),
    )


def _funnel(n_items: int, of_item: Sequence[Sequence[Version]], n_accepted: int) -> tuple[Step, ...]:
    checked = [any(one.check and one.check.verdict != "reject" for one in found) for found in of_item]
    return (
        Step("images", n_items),
        Step("written", sum(map(bool, of_item))),
        Step("cross-checked", sum(checked)),
        Step("accepted", n_accepted),
    )


def _minutes(states: Sequence[State]) -> float:
    leads = (event.lead_seconds or 0.0 for state in states for event in state.history)
    return sum(min(lead, BREAK_SECONDS) for lead in leads) / 60


def _moves(event: AnnotationEvent) -> bool:
    return any(change.name == "boxes" for change in event.changes)


def _box_iou(checks: Iterable[AnnotationEvent]) -> float | None:
    moved = [change for event in checks for change in event.changes if change.name == "boxes"]
    overlaps = [mean_iou(_boxes(change.before), _boxes(change.after)) for change in moved]
    found = [overlap for overlap in overlaps if overlap is not None]
    return fmean(found) if found else None


def _boxes(said: str) -> list[Box]:
    return [Box(*corners) for corners in json.loads(said)]


def _golds(states: Sequence[State]) -> dict[str, Share]:
    found: dict[str, list[bool]] = {}
    for state in states:
        for gold in state.golds:
            found.setdefault(gold.error, []).append(gold.caught)
    return {error: share_of(found[error]) for error in sorted(found)}


def _reasons(found: Iterable[Version]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for version in found:
        round_ = "accept" if version.acceptance else "cross_check"
        for reason in reasons_of(version):
            counts.setdefault(reason, Counter())[round_] += 1
    totals = by_frequency(Counter({reason: counter.total() for reason, counter in counts.items()}))
    return {reason: {name: counts[reason][name] for name in CHECKING} for reason in totals}


def _problem(text: str) -> str:
    """The problem without this case's numbers: ``Box 2 covers 7.31% of …`` is one with ``Box 1 covers 9% of …``."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "…", text)).strip()


def _categories(states: Sequence[State]) -> tuple[CategoryMix, ...]:
    of: dict[str, list[State]] = {}
    for state in states:
        if state.fields is not None:
            of.setdefault(state.fields.category, []).append(state)
    rows = [
        CategoryMix(
            category,
            len(found),
            sum(state.stage == "accepted" for state in found),
            share_of(e.blind_match for state in found for e in state.history if e.blind_match is not None),
        )
        for category, found in of.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.n_written, row.category)))


def _days(events: Iterable[AnnotationEvent]) -> tuple[Day, ...]:
    found: dict[str, Counter[str]] = {}
    for event in events:
        if event.at:
            found.setdefault(event.at[:10], Counter())[event.round] += 1
    return tuple(Day(date, {name: found[date][name] for name in ROUNDS}) for date in sorted(found))


def _skipped(states: Sequence[State]) -> tuple[Skipped, ...]:
    rows = [Skipped(state.item_id, tuple(sorted(set(state.skipped_by))), state.stage) for state in states]
    many = [row for row in rows if len(row.people) >= N_SKIPS]
    return tuple(sorted(many, key=lambda row: (-len(row.people), row.item_id)))
