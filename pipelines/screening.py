"""What may not ship although it passed its checks: rows that are near-duplicates of another, and rows of a benchmark.

A row is a near-duplicate when its first image *and* its question are near an earlier row's; one without images, when
its question is. The benchmarks are those of ``<home>/benchmarks.yaml`` (docs/decontamination.md); without the file none
is looked for, and the card says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from pipelines.decontamination import (
    BenchmarkCounts,
    BenchmarkIndex,
    Contamination,
    Scanner,
    TrainingRow,
    read_benchmarks,
    to_table,
)
from pipelines.duplicates import PictureHash, near_images, near_texts, picture_hash
from pipelines.records import Sample, Trajectory
from pipelines.rejects import Reason, RowFault
from pipelines.workspace import Workspace

_TEXT_KINDS = frozenset({"question", "phrase"})


@dataclass(frozen=True, slots=True)
class Screened:
    """Rows to take out, by trajectory, and the counts per benchmark; ``benchmarks`` None: none was looked for."""

    faults: Mapping[str, RowFault]
    benchmarks: Sequence[BenchmarkCounts] | None = None


@dataclass
class Screening:
    """Looks at one family after the other; what it computed of an image serves all of them."""

    workspace: Workspace
    _hashes: dict[str, PictureHash | None] = field(default_factory=dict)
    _scanner: Scanner | None = None

    @property
    def fingerprint(self) -> str:
        """Changes with the list of benchmarks; empty without one."""
        path = self.workspace.benchmarks
        return "" if not path.exists() else "|".join(one.fingerprint() for one in read_benchmarks(path))

    def screen(self, family: str, rows: Sequence[tuple[Sample, Trajectory]]) -> Screened:
        """Which rows may not ship. The evidence on benchmarks lies in ``<home>/contamination/<family>.parquet``."""
        faults = self._duplicates(rows)
        if not self.workspace.benchmarks.exists():
            return Screened(faults)
        report = self._opened_scanner().report(TrainingRow.of_trajectory(row, sample) for sample, row in rows)
        path = self.workspace.home / "contamination" / f"{family}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(to_table(report.found), path)
        images = {row.trajectory_id: bool(row.shown_images) for _, row in rows}
        for found in report.found:
            if counts_against(found, has_images=images[found.trajectory_id]):
                evidence = f"{found.benchmark} {found.benchmark_row}: {found.kind} {found.score:.2f}, {found.detail}"
                faults.setdefault(found.trajectory_id, RowFault(Reason.CONTAMINATED, evidence))
        return Screened(faults, report.counts)

    def _opened_scanner(self) -> Scanner:
        if self._scanner is None:
            folder = self.workspace.home / "benchmarks"
            index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), folder)
            self._scanner = Scanner(index, self.workspace.images)
        return self._scanner

    def _duplicates(self, rows: Sequence[tuple[Sample, Trajectory]]) -> dict[str, RowFault]:
        faults: dict[str, RowFault] = {}
        for places in self._alike(rows):
            questions = ["\n".join([rows[place][0].question, *rows[place][0].choices]) for place in places]
            for twin in near_texts(questions):
                of, row = rows[places[twin.of]][1], rows[places[twin.index]][1]
                evidence = f"image and question are near those of {of.trajectory_id}, which stays"
                faults[row.trajectory_id] = RowFault(Reason.NEAR_DUPLICATE, evidence)
        return faults

    def _alike(self, rows: Sequence[tuple[Sample, Trajectory]]) -> list[list[int]]:
        """Positions of rows whose first images look alike, and of those without any."""
        bare = [place for place, (_, row) in enumerate(rows) if not row.images]
        shown = [place for place, (_, row) in enumerate(rows) if row.images]
        hashes = [self._hash(rows[place][1]) for place in shown]
        groups: dict[int, list[int]] = defaultdict(list)
        for twin in near_images(hashes):
            groups[shown[twin.of]].append(shown[twin.index])
        return [bare, *([first, *others] for first, others in sorted(groups.items()))]

    def _hash(self, row: Trajectory) -> PictureHash | None:
        image = row.images[0]
        if image.sha256 not in self._hashes:
            self._hashes[image.sha256] = picture_hash(self.workspace.images.open(image))
        return self._hashes[image.sha256]


def counts_against(found: Contamination, *, has_images: bool) -> bool:
    """Whether a finding takes the row out: words alone do not where the question is about another image."""
    return not has_images or found.kind not in _TEXT_KINDS
