"""Training rows against an index of benchmarks: every finding, and the counts for the dataset card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipelines.decontamination.base import BenchmarkCounts, Contamination, Shown, TrainingRow, count
from pipelines.decontamination.index import BenchmarkIndex
from pipelines.decontamination.pictures import Seen
from pipelines.images import ImageStore


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order of the training rows, and one count per benchmark."""

    found: list[Contamination]
    counts: list[BenchmarkCounts]


class Scanner:
    """Looks at training rows one by one; an image that many rows share is looked at once."""

    def __init__(self, index: BenchmarkIndex, store: ImageStore) -> None:
        self._index, self._store = index, store
        self._seen: dict[str, list[Seen]] = {}

    def find(self, row: TrainingRow) -> list[Contamination]:
        """The findings of one row, each benchmark row once per kind, with the highest score.

        Raises ``ImageMissing`` when the store lacks an image of the row.
        """
        best: dict[tuple[str, str, str], Contamination] = {}
        for one in (*self._in_texts(row), *(found for shown in row.images for found in self._in_image(row, shown))):
            key = (one.benchmark, one.benchmark_row, one.kind)
            if key not in best or one.score > best[key].score:
                best[key] = one
        return [best[key] for key in sorted(best)]

    def report(self, rows: Iterable[TrainingRow]) -> Report:
        """The findings of all rows."""
        found = [one for row in rows for one in self.find(row)]
        return Report(found, [self._count(found, benchmark) for benchmark in self._index.rows])

    def _in_texts(self, row: TrainingRow) -> Iterator[Contamination]:
        for text in row.texts:
            for phrase in self._index.phrases.find(text):
                asked = self._index.asked[phrase.asked]
                yield Contamination(
                    trajectory_id=row.trajectory_id,
                    sample_id=row.sample_id,
                    benchmark=asked.benchmark,
                    benchmark_row=asked.row,
                    kind="question" if phrase.exact else "phrase",
                    score=phrase.share,
                    detail=f"{'the same question' if phrase.exact else 'the same words'}: {phrase.text}",
                )

    def _in_image(self, row: TrainingRow, shown: Shown) -> Iterator[Contamination]:
        for seen in self._look(shown):
            for place in self._index.places(seen.picture):
                yield Contamination(
                    trajectory_id=row.trajectory_id,
                    sample_id=row.sample_id,
                    benchmark=place.benchmark,
                    benchmark_row=place.row,
                    kind=seen.kind,
                    score=seen.score,
                    detail=f"{shown.where}: {seen.detail}",
                )

    def _look(self, shown: Shown) -> list[Seen]:
        sha256 = shown.image.sha256
        if sha256 not in self._seen:
            self._seen[sha256] = self._index.pictures.find(self._store.open(shown.image), sha256)
        return self._seen[sha256]

    def _count(self, found: list[Contamination], benchmark: str) -> BenchmarkCounts:
        rows = self._index.rows[benchmark]
        n_unread = sum(bool(row.fault) for row in rows)
        return count(found, benchmark=benchmark, n_rows=len(rows), n_unread=n_unread)
