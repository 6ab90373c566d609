"""Outliers: people below their peers, people who got worse, and the figures of every day or week (UTC). A first version
counts on the day it was written, once its checks are finished; blind answers and planted errors on the checks' day."""

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import WRITING
from darkroom.annotation.quality.annotators import AnnotatorQuality, median_lead, timestamp
from darkroom.annotation.quality.versions import MEASURES, measured_cases, share_of
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

MAX_DAYS = 21
"""A longer campaign is shown by week."""
_SIGNIFICANCE = 1 / 40


class Period(NamedTuple):
    """A day, or a week from its Monday on."""

    start: str
    n_submissions: int
    first_pass: Proportion
    blind: Proportion
    planted_errors: Proportion
    writing_seconds: float | None


class Drift(NamedTuple):
    """A person's share in the first half of their work and in the second, which is significantly lower."""

    email: str
    measure: str
    before: Proportion
    after: Proportion


def periods(states: Sequence[RecordState]) -> tuple[Period, ...]:
    """Every day or week with submissions, oldest first; submissions without a time are left out."""
    events = [e for state in states for e in state.history if timestamp(e.at) and e.verdict != "void"]
    cases = [case for case in measured_cases(states) if timestamp(case.at)]
    days = {at[:10] for at in [*(event.at for event in events), *(case.at for case in cases)]}
    start_of = _starts(days)
    events_of = by_key((start_of[event.at[:10]], event) for event in events)
    cases_of = by_key((start_of[case.at[:10]], case) for case in cases)
    return tuple(
        Period(
            start=start,
            n_submissions=len(events_of[start]),
            writing_seconds=median_lead(events_of[start], WRITING),
            **{measure: share_of(cases_of[start], measure) for measure in ("first_pass", "blind", "planted_errors")},
        )
        for start in sorted(set(start_of.values()))
    )


def _starts(days: Collection[str]) -> dict[str, str]:
    dates = {day: date.fromisoformat(day) for day in days}
    if not dates or (max(dates.values()) - min(dates.values())).days < MAX_DAYS:
        return {day: day for day in days}
    return {day: (at - timedelta(days=at.weekday())).isoformat() for day, at in dates.items()}


def find_drifts(states: Sequence[RecordState]) -> tuple[Drift, ...]:
    """People who got significantly worse in the second half of their cases (Fisher's exact test), widest gap first."""
    by_time = sorted(measured_cases(states), key=lambda case: case.at)
    by_person = by_key(((case.person, case.measure), case) for case in by_time)
    drifts = []
    for (person, measure), cases in by_person.items():
        middle = len(cases) // 2
        before, after = (proportion_of(case.is_good for case in half) for half in (cases[:middle], cases[middle:]))
        if is_below(after, before):
            drifts.append(Drift(person, measure, before, after))
    return tuple(sorted(drifts, key=lambda d: (_gap(d.after, d.before), d.email, MEASURES.index(d.measure))))


def is_below(share: Proportion, others: Proportion) -> bool:
    """Test that a share is significantly below the other (Fisher's exact test, one-sided)."""
    from scipy.stats import hypergeom  # takes a second

    if not share.of or not others.of:
        return False
    return bool(hypergeom.cdf(share.n, share.of + others.of, share.n + others.n, share.of) < _SIGNIFICANCE)


class Outlier(NamedTuple):
    """A person's share, and the others' together."""

    person: AnnotatorQuality
    measure: str
    share: Proportion
    others: Proportion


def find_outliers(people: Sequence[AnnotatorQuality]) -> list[Outlier]:
    """Significantly below their peers, the widest gap first; of 40 equal shares at most one is here by chance."""
    outliers = []
    for measure in MEASURES:
        shares: list[Proportion] = [getattr(person, measure) for person in people]
        total = Proportion(sum(share.n for share in shares), sum(share.of for share in shares))
        for person, share in zip(people, shares, strict=True):
            others = Proportion(total.n - share.n, total.of - share.of)
            if is_below(share, others):
                outliers.append(Outlier(person, measure, share, others))
    return sorted(outliers, key=lambda o: (_gap(o.share, o.others), o.person.email, o.measure))


def _gap(share: Proportion, others: Proportion) -> float:
    return (share.value or 0.0) - (others.value or 0.0)
