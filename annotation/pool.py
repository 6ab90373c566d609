"""Round 0: which images people look at. Everything that is left out is a typed reject.

Fit is what decodes, has a longer side of more than ``min_side`` pixels (Thyme 4.1), is not a near-duplicate of an
earlier one and is not in a benchmark of ``<home>/benchmarks.yaml``. EXIF is applied and stripped: what the browser
shows is what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotation.campaign import Campaign, ImageFolder
from annotation.code import annotation_digest
from annotation.faults import AnnotationFault
from pipelines.decontamination import BenchmarkIndex, Scanner, TrainingRow, read_benchmarks
from pipelines.decontamination.base import Shown
from pipelines.digest import digest
from pipelines.duplicates import PictureHash, near_images, picture_hash
from pipelines.records import PoolImage, Reject, to_row
from pipelines.rejects import Reason, RowFault, reject
from pipelines.stages import Outcome, Progress, Report, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

POOL = TableKey(("annotation_pool",), "all")
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"}


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be an image of the pool."""

    path: Path
    folder: ImageFolder
    row: str


def materialize_pool(
    workspace: Workspace, campaign: Campaign, folder: Path, *, progress: Progress | None = None
) -> Report:
    """The pool's table, made anew only when files or rules have changed. Raises ``AnnotationFault``."""
    files = list(found_files(campaign, folder))
    benchmarks = workspace.benchmarks.read_text() if workspace.benchmarks.exists() else ""
    rules = [campaign.min_side, campaign.n_images, campaign.seed, campaign.name]
    listed = [[one.row, one.folder.source, one.folder.license, *_stat(one.path)] for one in files]
    inputs = digest(["annotation_pool", listed, rules, benchmarks, annotation_digest()])
    pool = _Pool(workspace, campaign, progress)
    return run_stage(workspace.tables, POOL, PoolImage, inputs=inputs, perform=lambda: pool.build(files))


def found_files(campaign: Campaign, folder: Path) -> Iterator[Found]:
    """Every file that the campaign names, in order. Raises ``AnnotationFault`` for a place where nothing is."""
    for place in campaign.images:
        root = (folder / place.path).absolute()
        if root.is_dir():
            paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
        else:
            paths = sorted(Path(root.anchor).glob(str(root.relative_to(root.anchor))))
        if not paths:
            raise AnnotationFault(f"campaign.yaml: there is no image at {root}; paths are relative to {folder}")
        root = root if root.is_dir() else _fixed_part(root)
        yield from (Found(path, place, str(path.relative_to(root))) for path in paths)


def _fixed_part(pattern: Path) -> Path:
    """The folder before the first part with a wildcard."""
    fixed = Path(pattern.anchor)
    for part in pattern.parent.relative_to(pattern.anchor).parts:
        if any(sign in part for sign in "*?["):
            break
        fixed /= part
    return fixed


@dataclass(slots=True)
class _Pool:
    workspace: Workspace
    campaign: Campaign
    progress: Progress | None
    rejects: list[Reject] = field(default_factory=list)

    def build(self, files: Sequence[Found]) -> Outcome[PoolImage]:
        taken: list[PoolImage] = []
        hashes: list[PictureHash | None] = []
        seen: set[str] = set()
        for number, found in enumerate(files, 1):
            try:
                item, hashed = self._take(found, seen)
            except RowFault as fault:
                self.rejects.append(_reject_file(found, fault))
            else:
                taken.append(item)
                hashes.append(hashed)
            if self.progress is not None:
                self.progress(number, len(files))
        fit = self._without_benchmarks(self._without_twins(taken, hashes))
        return Outcome(self._chosen(fit), self.rejects, len(files))

    def _take(self, found: Found, seen: set[str]) -> tuple[PoolImage, PictureHash | None]:
        try:
            data = found.path.read_bytes()
        except OSError as fault:
            raise RowFault(Reason.MISSING_IMAGE, f"{found.path}: {fault.strerror}") from fault
        image = self.workspace.images.ingest(data)
        if max(image.width, image.height) <= self.campaign.min_side:
            evidence = f"{image.width}x{image.height}; the longer side needs more than {self.campaign.min_side} pixels"
            raise RowFault(Reason.TOO_SMALL_IMAGE, evidence)
        if image.sha256 in seen:
            raise RowFault(Reason.DUPLICATE, "the same image was there before")
        seen.add(image.sha256)
        item = PoolImage(image, found.folder.source, found.row, found.folder.license)
        return item, picture_hash(self.workspace.images.open(image))

    def _without_twins(self, items: Sequence[PoolImage], hashes: Sequence[PictureHash | None]) -> list[PoolImage]:
        twins = {twin.index: twin for twin in near_images(hashes)}
        for index, twin in twins.items():
            evidence = f"looks like {items[twin.of].source_row}, which stays ({twin.distance:.0f} of 64 bits differ)"
            self._reject_item(items[index], RowFault(Reason.NEAR_DUPLICATE, evidence))
        return [item for index, item in enumerate(items) if index not in twins]

    def _without_benchmarks(self, items: Sequence[PoolImage]) -> list[PoolImage]:
        if not self.workspace.benchmarks.exists():
            return list(items)
        index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), self.workspace.home / "benchmarks")
        scanner, kept = Scanner(index, self.workspace.images), []
        for item in items:
            found = scanner.find(TrainingRow("", item.image.sha256, (), (Shown(item.image, "image"),)))
            if found:
                one = found[0]
                fault = RowFault(Reason.CONTAMINATED, f"{one.benchmark} {one.benchmark_row}: {one.kind}, {one.detail}")
                self._reject_item(item, fault)
            else:
                kept.append(item)
        return kept

    def _chosen(self, items: Sequence[PoolImage]) -> list[PoolImage]:
        """A seeded choice that grows: a larger ``n_images`` keeps all that a smaller one had."""
        n_images = self.campaign.n_images
        if n_images is None or n_images >= len(items):
            return list(items)
        ranked = sorted(items, key=lambda item: digest([self.campaign.seed, item.image.sha256]))
        for item in ranked[n_images:]:
            self._reject_item(item, RowFault(Reason.NOT_CHOSEN, f"the campaign wants {n_images:,} images"))
        return ranked[:n_images]

    def _reject_item(self, item: PoolImage, fault: RowFault) -> None:
        self.rejects.append(reject_item(item, fault, stage=POOL.asset[0]))


def reject_item(item: PoolImage, fault: RowFault, *, stage: str, row: Mapping[str, Any] | None = None) -> Reject:
    """An image of the pool, taken out by a stage; ``row`` is what there is of its record, without one the image."""
    return reject(
        fault.reason,
        fault.evidence,
        stage=stage,
        row=to_row(item) if row is None else dict(row),
        source=item.source,
        source_row=item.source_row,
    )


def _reject_file(found: Found, fault: RowFault) -> Reject:
    place = {"source": found.folder.source, "source_row": found.row}
    return reject(fault.reason, fault.evidence, stage=POOL.asset[0], row={"path": str(found.path)}, **place)


def _stat(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
