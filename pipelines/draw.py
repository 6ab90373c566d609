"""Drawing samples until enough of them are drafted: in batches, each as large as what is still wanted.

Which samples are drawn depends on the samples, the number and what became of the earlier ones, never on time: killed
and run again, the same ones are drawn, and those that were paid for are recalled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.records import Draft, Reject, Sample
from pipelines.selection import Candidate, difficulty, ordered

Row = Draft | Reject


class Draw:
    """``n_most`` None draws everything at once."""

    def __init__(self, samples: Sequence[Sample], n_most: int | None) -> None:
        self._samples, self._n_most = samples, n_most
        self._made: dict[str, Row] = {}
        by_id = {sample.sample_id: sample for sample in samples}
        candidates = [Candidate(sample.sample_id, sample.category, difficulty(sample)) for sample in samples]
        self._waiting = list(samples) if n_most is None else [by_id[row_id] for row_id in ordered(candidates)]

    def next(self) -> Sequence[Sample]:
        """The samples to draft now; empty when there are enough drafts, or no more samples."""
        n_drafted = sum(isinstance(row, Draft) for row in self._made.values())
        n = len(self._waiting) if self._n_most is None else max(0, self._n_most - n_drafted)
        batch, self._waiting = self._waiting[:n], self._waiting[n:]
        return batch

    def take(self, batch: Sequence[Sample], made: Sequence[Row]) -> None:
        """What became of a batch."""
        self._made |= {sample.sample_id: row for sample, row in zip(batch, made, strict=True)}

    def rows(self, not_drawn: Callable[[Sample], Reject]) -> list[Row]:
        """A row for every sample, in the samples' order."""
        return [self._made.get(sample.sample_id) or not_drawn(sample) for sample in self._samples]
