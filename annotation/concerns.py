"""Whose figures lie below everybody else's by more than chance: where a team lead looks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from scipy.stats import hypergeom

from annotation.people import PersonQuality
from pipelines.shares import Share

MEASURES: dict[str, Callable[[PersonQuality], Share]] = {
    "first_pass": lambda row: row.first_pass,
    "blind": lambda row: row.blind,
    "upheld": lambda row: row.upheld,
    "golds": lambda row: row.golds,
}
_CHANCE = 1 / 40


class Concern(NamedTuple):
    """A person's share, and the others' together."""

    person: PersonQuality
    measure: str
    share: Share
    others: Share


def concerns(people: Sequence[PersonQuality]) -> list[Concern]:
    """Measures of people that are lower than the others' by more than chance, the widest gap first.

    Fisher's exact test, one-sided: of 40 figures that are all alike, one at most is expected here.
    """
    found = []
    for measure, share_of in MEASURES.items():
        total = _sum(map(share_of, people))
        for person in people:
            share = share_of(person)
            others = Share(total.n - share.n, total.of - share.of)
            if share.of and others.of and hypergeom.cdf(share.n, total.of, total.n, share.of) < _CHANCE:
                found.append(Concern(person, measure, share, others))
    return sorted(found, key=lambda one: (_gap(one), one.person.email, one.measure))


def _sum(shares: Iterable[Share]) -> Share:
    found = list(shares)
    return Share(sum(one.n for one in found), sum(one.of for one in found))


def _gap(concern: Concern) -> float:
    return (concern.share.value or 0.0) - (concern.others.value or 0.0)
