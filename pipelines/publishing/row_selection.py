"""Which rows ship, by their positions: of a million rows only ids, positions and reasons are in memory.

Rows are read in a fixed order; a row's position counts from 0. What a step needs of the rows it reads again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipelines.records.reject_reasons import Reason, RowError
from pipelines.selection.stratified import Candidate, select
from pipelines.storage.tables import Wanted


class NotShipped(NamedTuple):
    """A row that does not ship."""

    position: int
    reason: Reason
    evidence: str
    check: str


@dataclass
class Selection:
    """Rows that still ship and rejects so far, both in the order in which they came to be."""

    rows: dict[str, int] = field(default_factory=dict)
    """The position of each row that still ships, by its id."""
    rejections: list[NotShipped] = field(default_factory=list)
    n_in: int = 0

    @property
    def wanted(self) -> Wanted:
        """The rows that still ship."""
        return self._at(self.rows.values())

    @property
    def rejected(self) -> Wanted:
        """The rows that do not."""
        return self._at(rejection.position for rejection in self.rejections)

    def add(self, row_id: str, *, duplicate: str) -> None:
        """The next row; one whose id is there already is rejected, with ``duplicate`` as the evidence."""
        if row_id in self.rows:
            self.reject(RowError(Reason.DUPLICATE, duplicate))
        else:
            self.rows[row_id] = self.n_in
            self.n_in += 1

    def reject(self, error: RowError) -> None:
        """The next row, which does not ship."""
        self.rejections.append(NotShipped(self.n_in, error.reason, error.evidence, ""))
        self.n_in += 1

    def drop(self, row_id: str, error: RowError, *, check: str = "") -> None:
        """Rejects one of ``rows``."""
        self.rejections.append(NotShipped(self.rows.pop(row_id), error.reason, error.evidence, check))

    def fill_quota(self, candidates: Sequence[Candidate], n_rows: int, *, of: str) -> None:
        """Leaves ``n_rows`` of the candidates, balanced over category and difficulty."""
        selected = select(candidates, n_rows)
        not_selected = RowError(Reason.NOT_SELECTED, f"{of} is {n_rows} rows, and others were selected")
        for candidate in candidates:
            if candidate.row_id not in selected:
                self.drop(candidate.row_id, not_selected)

    def remaining(self, candidates: Iterable[Iterable[Candidate]]) -> list[Candidate]:
        """Of groups of candidates those that still ship, in the rows' order."""
        left = [candidate for group in candidates for candidate in group if candidate.row_id in self.rows]
        return sorted(left, key=lambda candidate: self.rows[candidate.row_id])

    def _at(self, positions: Iterable[int]) -> Wanted:
        wanted = np.zeros(self.n_in, np.bool_)
        wanted[np.fromiter(positions, np.int64)] = True
        return wanted
