"""What may not ship although it passed its checks: rows that are near-duplicates of another, and rows of a benchmark.

A row is a near-duplicate when its first image is an earlier row's, changed, *and* its question is near; one without
images, when its question is. The benchmarks are those of ``<home>/benchmarks.yaml`` (docs/decontamination.md); without
the file none is looked for, and the card says so.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow.parquet as pq

from pipelines.records import ImageRef, Sample, Trajectory
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.selection.decontamination import (
    BenchmarkIndex,
    Contamination,
    Scanner,
    TrainingRow,
    read_benchmarks,
    to_table,
)
from pipelines.selection.duplicates import Look, look_of, near_looks, near_texts
from pipelines.selection.duplicates.same_image import ImageComparison, same_image
from pipelines.storage.atomic_write import whole_file
from pipelines.storage.row_streams import RowStream
from pipelines.storage.workspace import Workspace

_TEXT_KINDS = frozenset({"question", "phrase"})

_looks: dict[str, Look] = {}
_compared: dict[frozenset[str], ImageComparison | None] = {}
"""Of images and pairs by sha256: what was computed for one family or asset serves all others in this process."""
_MOST_LOOKS, _MOST_COMPARED = 2_000, 200_000
"""About 60 and 40 MB. Beyond, the memory begins anew."""


@dataclass
class Screening:
    """Looks at one family after the other."""

    workspace: Workspace

    @property
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

    def _screened(self, name: str, rows: Collection[TrainingRow]) -> dict[str, RowError]:
        """Reads the rows twice; of all of them, questions and first images are in memory."""
        asked = [replace(row, texts=row.texts[:1], images=row.images[:1]) for row in rows]
        errors = self._duplicates(asked)
        if not self.workspace.benchmarks.exists():
            return errors
        report = self._scanner.report(rows)
        path = self.workspace.home / "contamination" / f"{name}.parquet"
        with whole_file(path) as part:
            pq.write_table(to_table(report.found), part)
        has_images = {row.row_id: bool(row.images) for row in asked}
        for finding in report.found:
            row_id = finding.trajectory_id or finding.sample_id
            if counts_against(finding, has_images=has_images[row_id]):
                evidence = (
                    f"{finding.benchmark} {finding.benchmark_row}: {finding.kind} {finding.score:.2f}, {finding.detail}"
                )
                errors.setdefault(row_id, RowError(Reason.CONTAMINATED, evidence))
        return errors

    @cached_property
    def _scanner(self) -> Scanner:
        index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), self.workspace.home / "benchmarks")
        return Scanner(index, self.workspace.images)

    def _duplicates(self, rows: Sequence[TrainingRow]) -> dict[str, RowError]:
        errors: dict[str, RowError] = {}
        for places in self._alike(rows):
            for twin in near_texts([rows[place].texts[0] for place in places]):
                of, row = rows[places[twin.of]], rows[places[twin.index]]
                evidence = f"image and question are near those of {of.row_id}, which stays"
                errors[row.row_id] = RowError(Reason.NEAR_DUPLICATE, evidence)
        return errors

    def _alike(self, rows: Sequence[TrainingRow]) -> list[list[int]]:
        """Positions of rows whose first images look alike, and of those without any."""
        bare = [place for place, row in enumerate(rows) if row.first_image is None]
        with_image = [(place, row.first_image) for place, row in enumerate(rows) if row.first_image is not None]
        groups: dict[int, list[int]] = defaultdict(list)
        first: dict[str, int] = {}
        questions: dict[str, set[str]] = defaultdict(set)
        for place, image in with_image:
            groups[first.setdefault(image.sha256, place)].append(place)
            questions[image.sha256].add(rows[place].texts[0])
        for digest, of in self.same_images([image for _, image in with_image], questions=questions).items():
            groups[first[of]] += groups.pop(first[digest])
        return [bare, *(sorted(places) for _, places in sorted(groups.items()))]

    def same_images(
        self, images: Iterable[ImageRef], *, questions: Mapping[str, set[str]] | None = None
    ) -> dict[str, str]:
        """Of every image that is an earlier one, changed: both by sha256, the earlier one being none such itself.

        With the ``questions`` about each, only pairs with a near question are compared, which takes most of the time.
        """
        each = list({image.sha256: image for image in images}.values())

        def compare(index: int, of: int) -> ImageComparison | None:
            pair = frozenset((each[index].sha256, each[of].sha256))
            if questions is not None and not _have_near(*(questions[sha256] for sha256 in pair)):
                return None
            with suppress(KeyError):  # another thread may begin anew between a look and the next
                return _compared[pair]
            comparison = same_image(looks[index], looks[of])
            if len(_compared) >= _MOST_COMPARED:
                _compared.clear()
            _compared[pair] = comparison
            return comparison

        looks = [self._look(image) for image in each]
        found = near_looks(looks, compare=compare)
        return {each[twin.index].sha256: each[twin.of].sha256 for twin in found}

    def _look(self, image: ImageRef) -> Look:
        look = _looks.get(image.sha256)
        if look is None:
            look = look_of(self.workspace.images.open(image))
            if len(_looks) >= _MOST_LOOKS:
                _looks.clear()
            _looks[image.sha256] = look
        return look


def _have_near(questions: set[str], others: set[str]) -> bool:
    """Whether a question of the one set is near one of the other."""
    if not questions.isdisjoint(others):
        return True
    twins = near_texts([*sorted(questions), *sorted(others)])
    return any(twin.of < len(questions) <= twin.index for twin in twins)


def counts_against(finding: Contamination, *, has_images: bool) -> bool:
    """Whether a finding takes the row out: words alone do not where the question is about another image."""
    return not has_images or finding.kind not in _TEXT_KINDS
