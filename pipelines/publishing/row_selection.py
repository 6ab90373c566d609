"""Selection of the rows that ship, by position from 0 in a fixed order. What a step needs of the rows it reads again,
so that a million rows take about 150 MB of memory."""

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import LICENCE_REMEDY, is_licensed
from darkroom.pipelines.selection.sampling import Strata
from darkroom.pipelines.storage.stage_runs import RejectKind
from darkroom.pipelines.storage.tables import Mask


class Cause(NamedTuple):
    """Why rows do not ship."""

    reason: Reason
    evidence: str
    check: str


class Selection:
    """The rows that still ship, and the rejects so far in the order in which they were rejected."""

    def __init__(self, *, ships_unlicensed: bool) -> None:
        self._ships_unlicensed = ships_unlicensed
        self._ships = bytearray()
        self._places: dict[int, int] = {}
        self._rejected, self._causes = array("q"), array("i")
        self._numbers: dict[Cause, int] = {}

    @property
    def n_in(self) -> int:
        return len(self._ships)

    @property
    def n_rows(self) -> int:
        return self._ships.count(1)

    @property
    def mask(self) -> Mask:
        return np.array(self._ships, np.bool_)

    @property
    def counts(self) -> Counter[RejectKind]:
        """The rejects by what is counted of them."""
        by_cause, counts = Counter(self._causes), Counter[RejectKind]()
        for cause, number in self._numbers.items():
            counts[RejectKind(cause.reason.value, cause.check, cause.reason.disposition)] += by_cause[number]
        return counts

    def rejections(self) -> Iterator[tuple[int, Cause]]:
        causes = list(self._numbers)
        return ((place, causes[number]) for place, number in zip(self._rejected, self._causes, strict=True))

    def add(self, row_id: str, sample: Sample, *, duplicate: str) -> None:
        """The next row; rejected if its id is there already (``duplicate``: the evidence) or its licence is unknown."""
        key = key64(row_id)
        if key in self._places:
            self.reject(RowError(Reason.DUPLICATE, duplicate))
        elif not self._ships_unlicensed and not is_licensed(sample.license):
            self.reject(RowError(Reason.LICENCE_UNKNOWN, f"{sample.source} states no licence: {LICENCE_REMEDY}"))
        else:
            self._places[key] = self.n_in
            self._ships.append(1)

    def reject(self, error: RowError) -> None:
        """The next row, which does not ship."""
        self._ships.append(0)
        self._drop(self.n_in - 1, error)

    def place(self, row_id: str) -> int | None:
        """The position of a row that still ships; None for any other."""
        place = self._places.get(key64(row_id))
        return place if place is not None and self._ships[place] else None

    def drop(self, row_id: str, error: RowError, *, check: str = "") -> None:
        """Rejects one of the rows. Raises ``KeyError`` for one that does not ship."""
        if (place := self.place(row_id)) is None:
            raise KeyError(row_id)
        self._drop(place, error, check)

    def fill_quota(self, candidates: Strata, n_rows: int, *, of: str) -> None:
        """Leaves ``n_rows`` of the candidates, which are known by their positions."""
        error = RowError(Reason.NOT_SELECTED, f"{of} is {n_rows} rows, and others were selected")
        for place in candidates.left_out(n_rows).tolist():
            self._drop(place, error)

    def forget_ids(self) -> None:
        """When nothing is dropped by its id any more."""
        self._places.clear()

    def _drop(self, place: int, error: RowError, check: str = "") -> None:
        cause = Cause(error.reason, error.evidence, check)
        self._ships[place] = 0
        self._rejected.append(place)
        self._causes.append(self._numbers.setdefault(cause, len(self._numbers)))
