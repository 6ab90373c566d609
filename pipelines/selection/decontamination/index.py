"""The index of benchmarks, and training rows compared with it: every finding, and the counts for the dataset card.

A run of 13 words that a benchmark's question and a training text share is a finding (Brown et al., 2020, appendix C);
a shorter question is one when it is a whole line of the training text. Runs, and whole questions, that several
questions about different images share are template text ("answer with the option's letter") and prove nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.selection.decontamination.benchmarks import (
    Benchmark,
    BenchmarkCounts,
    Contamination,
    ContaminationKind,
    ShownImage,
    TrainingRow,
    count,
)
from darkroom.pipelines.selection.decontamination.images import CACHE_VERSION, FingerprintCache, ImageIndex, ImageMatch
from darkroom.pipelines.selection.duplicates.texts import Words, n_grams, normalised, words
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.stage_runs import code_digest

N_WORDS = 13
TEMPLATE_ROWS = 3
"""What the questions about so many different images share is template text."""


class BenchmarkQuestion(NamedTuple):
    """A benchmark's question. ``about`` tells questions apart: the digest of its images, or of nothing but the text."""

    benchmark: str
    row: str
    text: str
    about: str


class PhraseMatch(NamedTuple):
    """Question number ``asked`` was found: all of it (``exact``), or ``share`` of its own runs, ``text`` among them."""

    asked: int
    exact: bool
    share: float
    text: str


class PhraseIndex:
    """The questions of all benchmarks, by their runs of ``N_WORDS`` words."""

    def __init__(self, questions: Sequence[BenchmarkQuestion]) -> None:
        abouts: defaultdict[Words, set[str]] = defaultdict(set)
        rows: defaultdict[Words, list[int]] = defaultdict(list)
        self._n_own = [0] * len(questions)
        texts = [words(question.text) for question in questions]
        for number, (question, text) in enumerate(zip(questions, texts, strict=True)):
            for run in set(n_grams(text, N_WORDS)):
                abouts[run].add(question.about)
                rows[run].append(number)
        self._rows = {run: numbers for run, numbers in rows.items() if len(abouts[run]) < TEMPLATE_ROWS}
        for numbers in self._rows.values():
            for number in numbers:
                self._n_own[number] += 1

    def find(self, text: str) -> list[PhraseMatch]:
        """The questions of which the text has runs of their own, by number."""
        runs = defaultdict[int, list[Words]](list)
        # a short question may stand above its choices, in a line of its own
        lines = (of_line for line in text.splitlines() if 0 < len(of_line := words(line)) < N_WORDS)
        for run in dict.fromkeys((*n_grams(words(text), N_WORDS), *lines)):
            for number in self._rows.get(run, ()):
                runs[number].append(run)
        return [
            PhraseMatch(number, len(own[0]) < N_WORDS, len(own) / self._n_own[number], " ".join(own[0]))
            for number, own in sorted(runs.items())
        ]


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """A row as it is looked for. ``error`` says why it could not be read; such a row is counted, not looked for."""

    row: str
    text: str = ""
    images: tuple[str, ...] = ()
    error: str = ""


class BenchmarkPlace(NamedTuple):
    """A row of a benchmark, by both names."""

    benchmark: str
    row: str


class BenchmarkIndex:
    """The benchmarks, to compare training rows with. ``rows`` has every benchmark's rows, the unread ones included."""

    def __init__(self, rows: dict[str, list[BenchmarkRow]], cache: FingerprintCache) -> None:
        self.rows = rows
        self.sha256s = sorted({sha256 for of in rows.values() for row in of for sha256 in row.images})
        self.images = ImageIndex([cache.read(sha256) for sha256 in self.sha256s])
        every_row = [(name, row) for name, of in rows.items() for row in of]
        self.asked = [
            BenchmarkQuestion(name, row.row, row.text, digest(row.images or normalised(row.text)))
            for name, row in every_row
            if row.text
        ]
        self.phrases = PhraseIndex(self.asked)
        self._places: dict[str, list[BenchmarkPlace]] = {sha256: [] for sha256 in self.sha256s}
        for name, row in every_row:
            for sha256 in dict.fromkeys(row.images):
                self._places[sha256].append(BenchmarkPlace(name, row.row))

    @classmethod
    def build(cls, benchmarks: Iterable[Benchmark], folder: Path) -> BenchmarkIndex:
        """The index, from what ``folder`` has and from the benchmarks' own files for the rest. Raises
        ``DecontaminationError`` that names the benchmark which cannot be read."""
        cache = FingerprintCache(folder)
        return cls({benchmark.name: _rows(benchmark, cache) for benchmark in benchmarks}, cache)

    def places(self, image: int) -> Sequence[BenchmarkPlace]:
        """The rows that show image number ``image``."""
        return self._places[self.sha256s[image]]


def _rows(benchmark: Benchmark, cache: FingerprintCache) -> list[BenchmarkRow]:
    path = cache.folder / f"rows-{CACHE_VERSION}" / f"{benchmark.name}-{benchmark.fingerprint()[:32]}.json"
    if not path.exists():
        # the cache's keys are those of the version before: what users have fingerprinted stays valid
        rows = [
            {"row": row.row, "text": row.text, "pictures": row.images, "fault": row.error}
            for row in (_row(row, cache) for row in benchmark.rows())
        ]
        write_whole(path, json.dumps(rows))
    stored = json.loads(path.read_bytes())
    return [BenchmarkRow(row["row"], row["text"], tuple(row["pictures"]), row["fault"]) for row in stored]


def _row(row: SourceRow | BadRow, cache: FingerprintCache) -> BenchmarkRow:
    if isinstance(row, BadRow):
        return BenchmarkRow(row.row, error=f"{row.reason.value}: {row.evidence}")
    try:
        images = tuple(cache.of(data).sha256 for data in row.images)
    except RowError as error:
        return BenchmarkRow(row.row, error=str(error))
    return BenchmarkRow(row.row, row.question, images)


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """All findings, in the order of the training rows, and one count per benchmark."""

    found: list[Contamination]
    counts: list[BenchmarkCounts]


class MatchCache:
    """A file with the matches of every image that was looked at, among these benchmarks' images and by this code: for
    all families and later runs. Processes share it; those of other benchmarks or code are deleted."""

    def __init__(self, file: Path, sha256s: Sequence[str]) -> None:
        code = code_digest("darkroom.pipelines.selection", "darkroom.pipelines.vision")
        self._key = digest([CACHE_VERSION, code, *sha256s])
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open(file)
        except sqlite3.OperationalError:  # locked, or a full disk
            raise
        except sqlite3.DatabaseError:  # damaged: made again
            file.unlink()
            self._open(file)
        self._database.execute("DELETE FROM matches WHERE benchmarks != ?", (self._key,))

    def _open(self, file: Path) -> None:
        self._database = sqlite3.connect(file, timeout=60.0, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS matches (benchmarks, image, found, UNIQUE (benchmarks, image))"
        )

    def find(self, image: str, look: Callable[[], list[ImageMatch]]) -> list[ImageMatch]:
        """Matches of an image, by its sha256: as they were found before, or by a ``look``."""
        wanted = "SELECT found FROM matches WHERE benchmarks = ? AND image = ?"
        if (kept := self._database.execute(wanted, (self._key, image)).fetchone()) is not None:
            return [ImageMatch(*match) for match in json.loads(kept[0])]
        found = look()
        self._database.execute("INSERT OR IGNORE INTO matches VALUES (?, ?, ?)", (self._key, image, json.dumps(found)))
        return found


_MOST_SEEN = 200_000
"""Images whose matches are in memory: about 60 MB."""


class Scanner:
    """Looks at training rows one by one; with a ``folder`` at an image once for all, else once for rows near it."""

    def __init__(self, index: BenchmarkIndex, store: ImageStore, folder: Path | None = None) -> None:
        self._index, self._store = index, store
        self._matches = lru_cache(maxsize=_MOST_SEEN)(self._find)
        self._cache = MatchCache(folder / "matches.sqlite", index.sha256s) if folder else None

    def find(self, row: TrainingRow) -> list[Contamination]:
        """The findings of a row, each benchmark row once per kind, at its best. Raises ``ImageMissing``."""
        best: dict[tuple[str, str, str], Contamination] = {}
        for finding in chain(self._in_texts(row), *(self._in_image(row, image) for image in row.images)):
            key = (finding.benchmark, finding.benchmark_row, finding.kind)
            if key not in best or finding.score > best[key].score:
                best[key] = finding
        return [best[key] for key in sorted(best)]

    def report(self, rows: Iterable[TrainingRow]) -> ContaminationReport:
        findings = [finding for row in rows for finding in self.find(row)]
        counts = [
            count(findings, benchmark=name, n_rows=len(of), n_unread=sum(bool(row.error) for row in of))
            for name, of in self._index.rows.items()
        ]
        return ContaminationReport(findings, counts)

    def _in_texts(self, row: TrainingRow) -> Iterator[Contamination]:
        for text in row.texts:
            for phrase in self._index.phrases.find(text):
                what = "the same question" if phrase.exact else "the same words"
                kind: ContaminationKind = "question" if phrase.exact else "phrase"
                yield _finding(row, self._index.asked[phrase.asked], kind, phrase.share, f"{what}: {phrase.text}")

    def _in_image(self, row: TrainingRow, image: ShownImage) -> Iterator[Contamination]:
        for match in self._matches(image.image):
            for place in self._index.places(match.image):
                yield _finding(row, place, match.kind, match.score, f"{image.where}: {match.detail}")

    def _find(self, image: ImageRef) -> list[ImageMatch]:
        def look() -> list[ImageMatch]:
            return self._index.images.find(self._store.open(image), image.sha256)

        return self._cache.find(image.sha256, look) if self._cache else look()


def _finding(
    row: TrainingRow, place: BenchmarkPlace | BenchmarkQuestion, kind: ContaminationKind, score: float, detail: str
) -> Contamination:
    return Contamination(row.trajectory_id, row.sample_id, place.benchmark, place.row, kind, score, detail)
