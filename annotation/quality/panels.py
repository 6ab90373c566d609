"""Agreement of people who judged the same version, each without knowing the others' verdicts.

Experts where ``experts_per_record`` is more than one, checkers of the share that is checked twice.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from darkroom.annotation.quality.agreement import Agreement, alpha
from darkroom.annotation.quality.versions import versions
from darkroom.annotation.rounds.record_state import RecordState
from darkroom.pipelines.verification.proportion import Proportion, proportion_of


class PanelAgreement(NamedTuple):
    """Of one round's versions with two verdicts or more; ``category`` is empty for all of them."""

    round: str
    category: str
    unanimous: Proportion
    """Versions with one verdict of all."""
    alpha: Agreement | None
    """Krippendorff's, nominal, on accept, fix and reject; None where it is undefined."""


def measure_panels(states: Iterable[RecordState]) -> tuple[PanelAgreement, ...]:
    """Experts first; of each round all versions, then by category, the most frequent first."""
    panels: dict[str, dict[str, list[list[str]]]] = {"accept": {}, "cross_check": {}}
    for round, category, verdicts in _panels(states):
        for name in ("", category):
            panels[round].setdefault(name, []).append(verdicts)
    return tuple(
        PanelAgreement(round, name, proportion_of(len(set(unit)) == 1 for unit in units), alpha(units))
        for round, by_category in panels.items()
        for name, units in sorted(by_category.items(), key=lambda pair: (pair[0] != "", -len(pair[1]), pair[0]))
    )


def _panels(states: Iterable[RecordState]) -> Iterator[tuple[str, str, list[str]]]:
    for state in states:
        category = state.fields.category if state.fields else ""
        for version in versions(state):
            for round, events in (("accept", version.acceptances), ("cross_check", version.cross_checks)):
                if len(events) > 1:
                    yield round, category, [event.verdict for event in events]
