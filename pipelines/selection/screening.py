"""What may not ship although it passed its checks: rows that are near-duplicates of another, and rows of a benchmark.

A row is a near-duplicate when its first image is an earlier row's, changed, *and* its question is near; one without
images, when its question is. The benchmarks are those of ``<home>/benchmarks.yaml`` (docs/decontamination.md); without
the file none is looked for, and the card says so.

Rows, looks of images and what they are found by wait on disk: about 100 bytes of a row are in memory, besides what is
rejected.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice, product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.selection.decontamination import (
    CONTAMINATION,
    BenchmarkIndex,
    Contamination,
    Scanner,
    TrainingRow,
    read_benchmarks,
    to_table,
)
from darkroom.pipelines.selection.duplicates import Duplicate, Look, look_of, near_looks, near_texts
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison, same_image
from darkroom.pipelines.selection.duplicates.texts import are_near, banded_texts, near_in
from darkroom.pipelines.selection.screened_rows import DistinctImages, Mapped, ScreenedRows
from darkroom.pipelines.storage.atomic_write import whole_file, write_whole
from darkroom.pipelines.storage.row_files import KeyedSpill, RowStream
from darkroom.pipelines.storage.stage import code_digest
from darkroom.pipelines.storage.workspace import Workspace

_TEXT_KINDS = frozenset({"question", "phrase"})
_FINDINGS_AT_ONCE = 1_000
_FEW_PAIRS = 100
"""Of questions: up to so many are compared by themselves, more meet under keys, which must be made first."""
_KEPT = 8
"""Sets of images whose comparison is kept: those of the SFT, RL and other datasets of a home."""

_looks: dict[str, Look] = {}
_compared: dict[frozenset[str], ImageComparison | None] = {}
"""Of images and pairs by sha256: what was computed for one family or asset serves all others in this process."""
_MOST_LOOKS, _MOST_COMPARED = 2_000, 200_000
"""About 60 and 40 MB. Beyond, the memory begins anew; a screening's own looks wait on disk."""


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
        """Of every image that is an earlier one, changed: both by sha256, the earlier one being none such itself.

        What came out for the latest sets of images is kept in ``<local>/same_images``.
        """
        distinct = DistinctImages(images, self._folder)
        path = self.workspace.local / "same_images" / f"{_digest(distinct)}.json"
        with suppress(FileNotFoundError, ValueError):  # never compared, or damaged
            known: dict[str, str] = json.loads(path.read_bytes())
            return known
        twins = self._same(distinct, range(len(distinct)))
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
            found = ((row, finding) for row in rows for finding in self._scanner.find(row))
            while pairs := list(islice(found, _FINDINGS_AT_ONCE)):
                writer.write_table(to_table(finding for _, finding in pairs))
                for row, finding in pairs:
                    if counts_against(finding, has_images=bool(row.images)):
                        yield row.row_id, RowError(Reason.CONTAMINATED, _evidence(finding))

    @cached_property
    def _scanner(self) -> Scanner:
        index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), self.workspace.local / "benchmarks")
        return Scanner(index, self.workspace.images)

    def _duplicates(self, rows: ScreenedRows) -> dict[str, RowError]:
        """Of rows whose first images look alike, and of those without any, such as have near questions."""
        texts = banded_texts(rows.questions(), folder=self._folder)
        # only these have another image with a near question: no other look is needed
        chosen = texts.owners_that_meet(rows.images.numbers).tolist()
        groups = rows.images.first.copy()
        for twin in self._same(rows.images, chosen, questions_about=rows.questions_about):
            groups[twin.index] = rows.images.first[twin.of]
        of_rows = np.append(groups, -1)[rows.images.numbers]
        twins = [(twin.index, twin.of) for twin in near_in(texts, groups=of_rows)]
        errors: dict[str, RowError] = {}
        for index, of in sorted(twins, key=lambda twin: (of_rows[twin[0]], twin[0])):
            evidence = f"image and question are near those of {rows.row_id(of)}, which stays"
            errors[rows.row_id(index)] = RowError(Reason.NEAR_DUPLICATE, evidence)
        return errors

    def _same(
        self,
        images: DistinctImages,
        chosen: Sequence[int],
        *,
        questions_about: Callable[[int], frozenset[str]] | None = None,
    ) -> Iterator[Duplicate]:
        """Which of the ``chosen`` images, by number, is an earlier one, changed.

        With the questions about each, only pairs with a near question are compared, which takes most of the time.
        """

        def compare(index: int, of: int) -> ImageComparison | None:
            numbers = chosen[index], chosen[of]
            if questions_about is not None and not _have_near(*map(questions_about, numbers)):
                return None
            pair = frozenset(images[number].sha256 for number in numbers)
            with suppress(KeyError):  # another thread may begin anew between a look and the next
                return _compared[pair]
            comparison = same_image(looks[index], looks[of])
            if len(_compared) >= _MOST_COMPARED:
                _compared.clear()
            _compared[pair] = comparison
            return comparison

        looks = Mapped(chosen, lambda number: self._look(images[number]))
        for twin in near_looks(looks, compare=compare, folder=self._folder):
            yield replace(twin, index=chosen[twin.index], of=chosen[twin.of])

    def _look(self, image: ImageRef) -> Look:
        look = _looks.get(image.sha256)
        if look is None:
            look = self._spilled_look(image)
            if len(_looks) >= _MOST_LOOKS:
                _looks.clear()
            _looks[image.sha256] = look
        return look

    def _spilled_look(self, image: ImageRef) -> Look:
        """The look on disk, where it is put when it is computed."""
        key = key64(image.sha256)
        look: Look | None = self._spill.get(key)
        if look is None:
            look = look_of(self.workspace.images.open(image))
            self._spill.add(key, look)
        return look

    @cached_property
    def _spill(self) -> KeyedSpill:
        return KeyedSpill(self._folder)

    @property
    def _folder(self) -> Path:
        return self.workspace.tables.scratch


def _digest(images: Iterable[ImageRef]) -> str:
    """Of the images in their order, and of the code that compares them."""
    total = sha256(
        code_digest("darkroom.pipelines.selection.duplicates", "darkroom.pipelines.vision", __name__).encode()
    )
    for image in images:
        total.update(bytes.fromhex(image.sha256))
    return total.hexdigest()


def _have_near(questions: Collection[str], others: Collection[str]) -> bool:
    """Whether a question of the one set is near one of the other."""
    if not set(questions).isdisjoint(others):
        return True
    if len(questions) * len(others) <= _FEW_PAIRS:
        return any(are_near(*pair) for pair in product(questions, others))
    twins = near_texts([*sorted(questions), *sorted(others)])
    return any(twin.of < len(questions) <= twin.index for twin in twins)


def _evidence(finding: Contamination) -> str:
    return f"{finding.benchmark} {finding.benchmark_row}: {finding.kind} {finding.score:.2f}, {finding.detail}"


def counts_against(finding: Contamination, *, has_images: bool) -> bool:
    """Whether a finding takes the row out: words alone do not where the question is about another image."""
    return not has_images or finding.kind not in _TEXT_KINDS
