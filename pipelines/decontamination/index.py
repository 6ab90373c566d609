"""The index of benchmarks: their rows, the pictures that these show, and what finds both in training rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipelines.decontamination.benchmarks import Benchmark
from pipelines.decontamination.fingerprints import CACHE_VERSION, FingerprintCache
from pipelines.decontamination.phrases import N_WORDS, Asked, PhraseIndex
from pipelines.decontamination.pictures import PictureIndex
from pipelines.digest import digest
from pipelines.duplicates import MAX_DISTANCE, normalised
from pipelines.rejects import RowFault
from pipelines.sources import BadRow, SourceRow
from pipelines.whole import write_whole


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """A row as it is looked for. ``fault`` says why it could not be read; such a row is counted, not looked for."""

    row: str
    text: str = ""
    pictures: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A row of a benchmark, by both names."""

    benchmark: str
    row: str


class BenchmarkIndex:
    """What training rows are compared with. ``rows`` has every benchmark's rows, the unread ones included."""

    def __init__(
        self,
        rows: dict[str, list[BenchmarkRow]],
        cache: FingerprintCache,
        *,
        n_words: int = N_WORDS,
        max_distance: int = MAX_DISTANCE,
    ) -> None:
        self.rows = rows
        self.sha256s = sorted({sha256 for of in rows.values() for row in of for sha256 in row.pictures})
        self.pictures = PictureIndex([cache.read(sha256) for sha256 in self.sha256s], max_distance=max_distance)
        self.asked = [
            Asked(name, row.row, row.text, digest(row.pictures or normalised(row.text)))
            for name, of in rows.items()
            for row in of
            if row.text
        ]
        self.phrases = PhraseIndex(self.asked, n_words=n_words)
        self._places: dict[str, list[Place]] = {sha256: [] for sha256 in self.sha256s}
        for name, of in rows.items():
            for row in of:
                for sha256 in dict.fromkeys(row.pictures):
                    self._places[sha256].append(Place(name, row.row))

    @classmethod
    def build(
        cls,
        benchmarks: Iterable[Benchmark],
        folder: Path,
        *,
        n_words: int = N_WORDS,
        max_distance: int = MAX_DISTANCE,
    ) -> BenchmarkIndex:
        """The index, from what ``folder`` has and from the benchmarks' own files for the rest.

        Raises ``DecontaminationFault`` that names the benchmark which cannot be read.
        """
        cache = FingerprintCache(folder)
        rows = {benchmark.name: _rows(benchmark, cache) for benchmark in benchmarks}
        return cls(rows, cache, n_words=n_words, max_distance=max_distance)

    def places(self, picture: int) -> Sequence[Place]:
        """The rows that show picture number ``picture``."""
        return self._places[self.sha256s[picture]]


def _rows(benchmark: Benchmark, cache: FingerprintCache) -> list[BenchmarkRow]:
    path = cache.folder / f"rows-{CACHE_VERSION}" / f"{benchmark.name}-{benchmark.fingerprint()[:32]}.json"
    if not path.exists():
        made = [asdict(_row(row, cache)) for row in benchmark.rows()]
        write_whole(path, json.dumps(made, ensure_ascii=True).encode())
    return [
        BenchmarkRow(row["row"], row["text"], tuple(row["pictures"]), row["fault"])
        for row in json.loads(path.read_bytes())
    ]


def _row(row: SourceRow | BadRow, cache: FingerprintCache) -> BenchmarkRow:
    if isinstance(row, BadRow):
        return BenchmarkRow(row.row, fault=f"{row.reason.value}: {row.evidence}")
    try:
        pictures = tuple(cache.of(data).sha256 for data in row.images)
    except RowFault as fault:
        return BenchmarkRow(row.row, fault=str(fault))
    return BenchmarkRow(row.row, row.question, pictures)
