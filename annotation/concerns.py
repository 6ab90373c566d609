"""Whose figures lie below everybody else's by more than chance: where a team lead looks first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from annotation.people import PersonQuality
from annotation.shares import Share

MEASURES: dict[str, Callable[[PersonQuality], Share]] = {
    "first_pass": lambda row: row.first_pass,
    "blind": lambda row: row.blind,
    "upheld": lambda row: row.upheld,
    "golds": lambda row: row.golds,
}


class Concern(NamedTuple):
    """A person's share, and the others' together."""

    person: PersonQuality
    measure: str
    share: Share
    others: Share


def concerns(people: Sequence[PersonQuality]) -> list[Concern]:
    """Measures of people whose whole 95 % interval lies below the others' share, the widest gap first.

    Of 40 figures that are all alike, one is expected here by chance.
    """
    found = []
    for measure, share_of in MEASURES.items():
        for person in people:
            share = share_of(person)
            rest = [share_of(other) for other in people if other is not person]
            others = Share(sum(one.n for one in rest), sum(one.of for one in rest))
            if share.of and others.value is not None and share.interval[1] < others.value:
                found.append(Concern(person, measure, share, others))
    return sorted(found, key=lambda one: (_gap(one), one.person.email, one.measure))


def _gap(concern: Concern) -> float:
    return (concern.share.value or 0.0) - (concern.others.value or 0.0)
