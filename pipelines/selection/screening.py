"""Reject rows that passed their checks but repeat another row or a benchmark's.

A row is a near-duplicate when its first image is an earlier row's, changed, *and* its question is near *and* its answer
has the same words; one without images, when question and answer are. The benchmarks are those of
``<home>/benchmarks.yaml`` (docs/decontamination.md). All waits on disk: about 110 bytes of a row are in memory, besides
what is rejected.
"""

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.selection.decontamination import (
    CONTAMINATION,
    BenchmarkIndex,
    Scanner,
    TrainingRow,
    read_benchmarks,
    to_table,
)
from darkroom.pipelines.selection.duplicates import Duplicate
from darkroom.pipelines.selection.duplicates.key_index import mixed
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, look_of
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison, same_image
from darkroom.pipelines.selection.duplicates.texts import TextBands, are_near, near_in, near_texts, normalised
from darkroom.pipelines.storage.atomic_write import whole_file, write_whole
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.row_files import KeyedSpill, RowSpill, RowStream
from darkroom.pipelines.storage.stage_runs import code_digest
from darkroom.pipelines.storage.workspace import Workspace

T = TypeVar("T")
Numbers = NDArray[np.int64]


class DistinctImages(Sequence[ImageRef]):
    """The images that are mentioned, each once, in the order of their first mentions."""

    def __init__(self, images: Iterable[ImageRef | None], folder: Path) -> None:
        spill, begins, keys = RowSpill(folder), array("q"), array("Q")
        for image in images:
            begins.append(-1 if image is None else spill.add(image))
            keys.append(0 if image is None else key64(image.sha256))
        places = np.array(begins, np.int64)
        mentions = np.flatnonzero(places >= 0)
        _, first, inverse = np.unique(np.array(keys, np.uint64)[mentions], return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.numbers: Numbers = np.full(len(keys), -1)
        """Of every mention the image's number; -1 where there is none."""
        self.numbers[mentions] = np.argsort(order)[inverse]
        self.first: Numbers = mentions[first[order]]
        """Of every image its first mention."""
        self._begins, self._spill = places[self.first], spill

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, number: int) -> ImageRef:  # type: ignore[override]  # no slices
        return cast(ImageRef, self._spill.read(int(self._begins[number])))


class ScreenedRows:
    """Rows by their places, from 0 on."""

    def __init__(self, rows: Iterable[TrainingRow], folder: Path) -> None:
        self._spill, self._begins = RowSpill(folder), array("q")
        self.answers = array("Q")
        """Keys of the answers' words."""
        self.images = DistinctImages(self._first_images(rows), folder)
        """The rows' first images; a row is a mention."""
        self._by_image = np.argsort(self.images.numbers, kind="stable")
        self._image_of = self.images.numbers[self._by_image]

    def __len__(self) -> int:
        return len(self._begins)

    def row_id(self, place: int) -> str:
        return self._row(place)[0]

    def questions(self) -> Iterator[str]:
        return (self._row(place)[1] for place in range(len(self)))

    def questions_about(self, image: int) -> frozenset[str]:
        begin, end = np.searchsorted(self._image_of, (image, image + 1))
        return frozenset(self._row(place)[1] for place in self._by_image[begin:end].tolist())

    def _first_images(self, rows: Iterable[TrainingRow]) -> Iterator[ImageRef | None]:
        for row in rows:
            self._begins.append(self._spill.add((row.row_id, row.texts[0])))
            self.answers.append(key64(normalised(row.answer) or row.answer))
            yield row.first_image

    def _row(self, place: int) -> tuple[str, str]:
        return cast(tuple[str, str], self._spill.read(self._begins[place]))


class Mapped(Sequence[T]):
    """``perform`` of the items, computed whenever one is asked for."""

    def __init__(self, items: Sequence[int], perform: Callable[[int], T]) -> None:
        self._items, self._perform = items, perform

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int) -> T:  # type: ignore[override]  # no slices
        return self._perform(self._items[place])


_TEXT_KINDS = frozenset({"question", "phrase"})
_FINDINGS_AT_ONCE = 1_000
_FEW_PAIRS = 100
"""Of questions: up to so many are compared by themselves, more meet under keys, which must be made first."""
_KEPT = 8
"""Sets of images whose comparison is kept: those of the SFT, RL and other datasets of a home."""

_MOST_LOOKS = 2_000
"""About 60 MB in memory; a screening's own looks wait on disk."""
_MOST_COMPARED = 200_000
"""About 40 MB. Beyond, the memory begins anew."""
_compared: dict[frozenset[str], ImageComparison | None] = {}
"""Of pairs by sha256: what was computed for one family or asset serves all others in this process, as looks do."""


@lru_cache(maxsize=_MOST_LOOKS)
def _look_of(store: ImageStore, image: ImageRef) -> Look:
    return look_of(store.open(image))


@dataclass
class Screening:
    """Looks at one family after the other."""

    workspace: Workspace

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the list of benchmarks; empty without one."""
        path = self.workspace.benchmarks
        return "" if not path.exists() else "|".join(benchmark.fingerprint() for benchmark in read_benchmarks(path))

    def screen(self, family: str, rows: Collection[tuple[Sample, Trajectory]]) -> dict[str, RowError]:
        """The errors of trajectories that may not ship, by id; evidence: ``<home>/contamination/<family>.parquet``."""
        training = RowStream(len(rows), lambda: (TrainingRow.of_trajectory(row, sample) for sample, row in rows))
        return self._screened(family, training)

    def screen_samples(self, name: str, samples: Collection[Sample]) -> dict[str, RowError]:
        """The errors of samples that may not ship, by id; evidence: ``<home>/contamination/<name>.parquet``."""
        return self._screened(name, RowStream(len(samples), lambda: map(TrainingRow.of_sample, samples)))

    def same_images(self, images: Iterable[ImageRef]) -> dict[str, str]:
        """Map images to the earlier image that they are, changed: both by sha256; the earlier one is none such itself.
        What came out for the latest sets of images is kept in ``<local>/same_images``."""
        distinct = DistinctImages(images, self._folder)
        path = self.workspace.local / "same_images" / f"{_digest(distinct)}.json"
        with suppress(FileNotFoundError, ValueError):  # never compared, or damaged
            return cast(dict[str, str], json.loads(path.read_bytes()))
        twins = self._same(distinct, range(len(distinct)), questions_about=None)
        same = {distinct[twin.index].sha256: distinct[twin.of].sha256 for twin in twins}
        write_whole(path, json.dumps(same))
        with suppress(FileNotFoundError):  # another process removes them, too
            for old in sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
                old.unlink()
        return same

    def _screened(self, name: str, rows: Collection[TrainingRow]) -> dict[str, RowError]:
        """Reads the rows twice."""
        errors = self._duplicates(ScreenedRows(rows, self._folder))
        if self.fingerprint:
            for row_id, error in self._contaminated(name, rows):
                errors.setdefault(row_id, error)
        return errors

    def _contaminated(self, name: str, rows: Iterable[TrainingRow]) -> Iterator[tuple[str, RowError]]:
        """The errors of rows; all findings are written, those that count against no row among them."""
        path = self.workspace.home / "contamination" / f"{name}.parquet"
        with whole_file(path) as part, pq.ParquetWriter(part, CONTAMINATION) as writer:
            findings = ((row, finding) for row in rows for finding in self._scanner.find(row))
            while pairs := list(islice(findings, _FINDINGS_AT_ONCE)):
                writer.write_table(to_table(finding for _, finding in pairs))
                for row, finding in pairs:
                    # words alone reject no row where the question is about another image
                    if not row.images or finding.kind not in _TEXT_KINDS:
                        source = f"{finding.benchmark} {finding.benchmark_row}"
                        evidence = f"{source}: {finding.kind} {finding.score:.2f}, {finding.detail}"
                        yield row.row_id, RowError(Reason.CONTAMINATED, evidence)

    @cached_property
    def _scanner(self) -> Scanner:
        folder = self.workspace.local / "benchmarks"
        index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), folder)
        return Scanner(index, self.workspace.images, folder)

    def _duplicates(self, rows: ScreenedRows) -> dict[str, RowError]:
        """Reject rows with near questions and one answer whose first images look alike, or that have no images."""
        texts = TextBands(rows.questions(), folder=self._folder)
        # only these have another image with a near question: no other look is needed
        chosen = texts.owners_that_meet(rows.images.numbers).tolist()
        groups = rows.images.first.copy()
        for twin in self._same(rows.images, chosen, questions_about=rows.questions_about):
            groups[twin.index] = rows.images.first[twin.of]
        of_rows = np.append(groups, -1)[rows.images.numbers]
        with_answers = mixed(of_rows.astype(np.uint64), np.array(rows.answers, np.uint64)).astype(np.int64)
        twins = [(twin.index, twin.of) for twin in near_in(texts, groups=with_answers)]
        errors: dict[str, RowError] = {}
        for index, of in sorted(twins, key=lambda twin: (of_rows[twin[0]], twin[0])):
            evidence = f"image and question are near those of {rows.row_id(of)}, which stays; the answer is the same"
            errors[rows.row_id(index)] = RowError(Reason.NEAR_DUPLICATE, evidence)
        return errors

    def _same(
        self, images: DistinctImages, chosen: Sequence[int], *, questions_about: Callable[[int], frozenset[str]] | None
    ) -> Iterator[Duplicate]:
        """Find the ``chosen`` images, by number, that are an earlier one, changed. With the questions about each, only
        pairs with a near question are compared, which takes most of the time."""

        def compare(index: int, of: int) -> ImageComparison | None:
            pair = frozenset(images[chosen[number]].sha256 for number in (index, of))
            with suppress(KeyError):  # another thread may begin anew between a look and the next
                return _compared[pair]
            comparison = same_image(looks[index], looks[of])
            if len(_compared) >= _MOST_COMPARED:
                _compared.clear()
            _compared[pair] = comparison
            return comparison

        def related(index: int, of: int) -> bool:
            return questions_about is None or _have_near(questions_about(chosen[index]), questions_about(chosen[of]))

        looks = Mapped(chosen, lambda number: self._look(images[number]))
        for twin in near_looks(looks, compare=compare, related=related, folder=self._folder):
            yield replace(twin, index=chosen[twin.index], of=chosen[twin.of])

    def _look(self, image: ImageRef) -> Look:
        """The look on disk, where it is put when it is first asked for."""
        key = key64(image.sha256)
        look: Look | None = self._spill.get(key)
        if look is None:
            look = _look_of(self.workspace.images, image)
            self._spill.add(key, look)
        return look

    @cached_property
    def _spill(self) -> KeyedSpill:
        return KeyedSpill(self._folder)

    @property
    def _folder(self) -> Path:
        return self.workspace.tables.scratch


def _digest(images: Iterable[ImageRef]) -> str:
    """Digest of the images in their order, and of the code that compares them."""
    code = code_digest("darkroom.pipelines.selection.duplicates", "darkroom.pipelines.vision", __name__)
    total = sha256(code.encode())
    for image in images:
        total.update(bytes.fromhex(image.sha256))
    return total.hexdigest()


def _have_near(questions: Collection[str], others: Collection[str]) -> bool:
    if not set(questions).isdisjoint(others):
        return True
    if len(questions) * len(others) <= _FEW_PAIRS:
        return any(are_near(*pair) for pair in product(questions, others))
    return any(twin.of < len(questions) <= twin.index for twin in near_texts([*sorted(questions), *sorted(others)]))
