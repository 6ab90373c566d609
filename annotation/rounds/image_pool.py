"""The image pool of a campaign: high-resolution, decodable, deduplicated and decontaminated.

The longer side has more than ``min_side`` pixels (Thyme 4.1); benchmarks are those of ``<home>/benchmarks.yaml``. Every
other image is a typed reject. EXIF is applied and stripped, so that the browser shows the stored pixels. An image that
is too large for a browser gets a view, which covers the same area with fewer pixels; records stay in the image's own.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.annotation import AnnotationError
from darkroom.annotation._plugin.darkroom_studio.content import shown_size
from darkroom.annotation.rounds.campaign import Campaign, ImageFolder, annotation_digest
from darkroom.pipelines.records import ImageRef, PoolImage, Reject, to_row
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject
from darkroom.pipelines.selection.decontamination import BenchmarkIndex, Scanner, TrainingRow, read_benchmarks
from darkroom.pipelines.selection.decontamination.benchmarks import ShownImage
from darkroom.pipelines.selection.duplicates.look_search import near_looks
from darkroom.pipelines.selection.duplicates.looks import Look, look_of
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.catalog import EMBEDDED, Catalog
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import LARGEST_PIXELS
from darkroom.pipelines.storage.stage_runs import Outcome, Progress, StageReport, run_stage
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import raised_as

POOL = TableKey(("annotation_pool",), "all")
MAX_FILE_BYTES, N_TRIAL_IMAGES = 2**30, 20
TRIAL_FOLDER = "trial"
"""As in ``trial_campaign.yaml``."""
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"}


@dataclass(frozen=True, slots=True)
class CandidateFile:
    """A file that may become an image of the pool."""

    path: Path
    folder: ImageFolder
    row: str


def require_pool(tables: Tables, pool: TableKey = POOL) -> None:
    """Raises ``AnnotationError`` before a campaign's first sync."""
    if not tables.exists(pool):
        raise AnnotationError("the campaign has handed out nothing yet. Run: darkroom annotate sync")


def materialize_pool(
    workspace: Workspace, campaign: Campaign, folder: Path, *, progress: Progress | None = None
) -> StageReport:
    """The pool's table, rebuilt when files or rules have changed. Raises ``AnnotationError``."""
    files = list(list_files(campaign, folder))
    benchmarks = workspace.benchmarks.read_text() if workspace.benchmarks.exists() else ""
    rules = [campaign.min_side, campaign.n_images, campaign.seed, campaign.name]
    stats = [file.path.stat() for file in files]
    listed = [
        [file.row, file.folder.source, file.folder.license, stat.st_size, stat.st_mtime_ns]
        for file, stat in zip(files, stats, strict=True)
    ]
    code = annotation_digest("darkroom.pipelines.selection", "darkroom.pipelines.vision")
    inputs = digest(["annotation_pool", listed, rules, benchmarks, code])
    builder = _PoolBuilder(workspace, campaign, progress)
    return run_stage(workspace.tables, POOL, PoolImage, inputs=inputs, perform=lambda: builder.build(files))


def list_files(campaign: Campaign, folder: Path) -> Iterator[CandidateFile]:
    """Every file of the campaign, in order. Raises ``AnnotationError`` for a path without images."""
    for listed in campaign.images:
        root = (folder / listed.path).absolute()
        if root.is_dir():
            paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
        else:
            paths = sorted(Path(root.anchor).glob(str(root.relative_to(root.anchor))))
        if not paths:
            raise AnnotationError(f"campaign.yaml: no image at {root}; paths are relative to {folder}")
        if not root.is_dir():  # a pattern: the folder before its first part with a wildcard
            root = Path(*takewhile(lambda part: not any(sign in part for sign in "*?["), root.parent.parts))
        yield from (CandidateFile(path, listed, str(path.relative_to(root))) for path in paths)


@dataclass(slots=True)
class _PoolBuilder:
    workspace: Workspace
    campaign: Campaign
    progress: Progress | None
    rejects: list[Reject] = field(default_factory=list)

    def build(self, files: Sequence[CandidateFile]) -> Outcome[PoolImage]:
        items: list[PoolImage] = []
        looks: list[Look] = []
        digests: set[str] = set()
        for number, file in enumerate(files, 1):
            try:
                item, look = self._ingest(file, digests)
            except RowError as error:
                origin = {"source": file.folder.source, "source_row": file.row}
                row = {"path": str(file.path)}
                self.rejects.append(reject(error.reason, error.evidence, stage=POOL.asset[0], row=row, **origin))
            else:
                items.append(item)
                looks.append(look)
            if self.progress is not None:
                self.progress(number, len(files))
        return Outcome(self._sample(self._decontaminate(self._deduplicate(items, looks))), self.rejects, len(files))

    def _ingest(self, file: CandidateFile, digests: set[str]) -> tuple[PoolImage, Look]:
        image, pixels = self.workspace.images.ingest_pixels(_read(file.path), max_pixels=LARGEST_PIXELS)
        require_size(image, self.campaign)
        if image.sha256 in digests:
            raise RowError(Reason.DUPLICATE, "the same image was there before")
        digests.add(image.sha256)
        pixels, view = add_view(self.workspace.images, image, pixels)
        return PoolImage(image, file.folder.source, file.row, file.folder.license, view), look_of(pixels)

    def _deduplicate(self, items: Sequence[PoolImage], looks: Sequence[Look]) -> list[PoolImage]:
        duplicates = {duplicate.index: duplicate for duplicate in near_looks(looks)}
        for index, duplicate in duplicates.items():
            earlier = items[duplicate.of].source_row
            evidence = f"looks like {earlier}, which stays ({duplicate.distance:.0f} of 64 bits differ)"
            self._reject_item(items[index], RowError(Reason.NEAR_DUPLICATE, evidence))
        return [item for index, item in enumerate(items) if index not in duplicates]

    def _decontaminate(self, items: Sequence[PoolImage]) -> list[PoolImage]:
        if not self.workspace.benchmarks.exists():
            return list(items)
        index = BenchmarkIndex.build(read_benchmarks(self.workspace.benchmarks), self.workspace.local / "benchmarks")
        scanner, clean = Scanner(index, self.workspace.images), []
        for item in items:
            hits = scanner.find(TrainingRow("", item.image.sha256, (), (ShownImage(item.shown, "image"),)))
            if hits:
                hit = hits[0]
                error = RowError(Reason.CONTAMINATED, f"{hit.benchmark} {hit.benchmark_row}: {hit.kind}, {hit.detail}")
                self._reject_item(item, error)
            else:
                clean.append(item)
        return clean

    def _sample(self, items: Sequence[PoolImage]) -> list[PoolImage]:
        """A seeded sample; a larger ``n_images`` contains the smaller one's images."""
        n_images = self.campaign.n_images
        if n_images is None or n_images >= len(items):
            return list(items)
        ranked = sorted(items, key=lambda item: digest([self.campaign.seed, item.image.sha256]))
        for item in ranked[n_images:]:
            self._reject_item(item, RowError(Reason.NOT_CHOSEN, f"the campaign wants {n_images:,} images"))
        return ranked[:n_images]

    def _reject_item(self, item: PoolImage, error: RowError) -> None:
        self.rejects.append(reject_item(item, error, stage=POOL.asset[0]))


def add_view(images: ImageStore, image: ImageRef, pixels: Image.Image) -> tuple[Image.Image, ImageRef | None]:
    """The pixels that people see of an image, and the stored view of one that is too large for a browser."""
    size = shown_size(image.width, image.height)
    if size == pixels.size:
        return pixels, None
    pixels = pixels.resize(size, Image.Resampling.LANCZOS)
    return pixels, images.add_view(pixels, parent=image.sha256, made_by="annotation view")


def _read(path: Path) -> bytes:
    with raised_as(lambda error: RowError(Reason.MISSING_IMAGE, f"{path}: {error.strerror}"), OSError):
        n_bytes = path.stat().st_size
        if n_bytes > MAX_FILE_BYTES:
            evidence = f"a file of {n_bytes:,} bytes, the limit is {MAX_FILE_BYTES:,}; scale it down first"
            raise RowError(Reason.TOO_LARGE_IMAGE, evidence)
        return path.read_bytes()


def left_out(workspace: Workspace) -> list[Reject]:
    """The campaign's unsuitable images, those over the limit of pixels first, without the images not sampled."""
    rejects = [entry for entry in workspace.tables.read_rejects(POOL) if entry.reason != Reason.NOT_CHOSEN]
    return sorted(rejects, key=lambda entry: entry.reason != Reason.TOO_LARGE_IMAGE)


def require_size(image: ImageRef, campaign: Campaign) -> None:
    """Raises ``RowError`` for an image that is too small for the campaign."""
    if max(image.width, image.height) <= campaign.min_side:
        evidence = f"{image.width}x{image.height}; the longer side needs more than {campaign.min_side} pixels"
        raise RowError(Reason.TOO_SMALL_IMAGE, evidence)


def reject_item(item: PoolImage, error: RowError, *, stage: str, row: dict[str, Any] | None = None) -> Reject:
    """A pool image rejected by a stage; ``row`` is its record so far (default: the image)."""
    origin = {"source": item.source, "source_row": item.source_row}
    return reject(error.reason, error.evidence, stage=stage, row=row or to_row(item), **origin)


def write_trial_images(workspace: Workspace, folder: str = TRIAL_FOLDER) -> int:
    """Write large images of the bundled source, the same ones every time; returns their number."""
    source = Catalog(workspace.sources).open(EMBEDDED)
    rows = (row for shard in range(source.n_shards) for row in source.rows(shard) if isinstance(row, SourceRow))
    images: dict[str, bytes] = {}
    for data in (data for row in rows for data in row.images[:1]):
        with suppress(OSError):  # the source has small and damaged files as well
            if max(Image.open(io.BytesIO(data)).size) > Campaign().min_side:
                images.setdefault(digest_bytes(data), data)
        if len(images) == N_TRIAL_IMAGES:
            break
    for number, data in enumerate(images.values(), 1):
        write_whole(workspace.annotation / folder / f"{number:02d}.jpg", data)
    return len(images)
