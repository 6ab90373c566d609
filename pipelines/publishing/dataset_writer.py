"""Publishing a dataset: select, screen and fill quotas, split, write shards and card, then a marker of completion.

What differs between datasets is a ``Publication`` (``sft_dataset.py``, ``rl_dataset.py``).
Every row that does not ship is a reject with its reason. Rows stream from the stages' tables into the dataset's table,
and from there into its files: of all rows only what selects them is in memory.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from darkroom.pipelines.generation.stage import RUNNER_CODE
from darkroom.pipelines.publishing.cards import card_code, plain, render_card
from darkroom.pipelines.publishing.cards.row_facts import RowFacts
from darkroom.pipelines.publishing.dataset_reader import Kind, dataset_files, dataset_folders, marker_facts, read_files
from darkroom.pipelines.publishing.manifest import MANIFEST, write_manifest
from darkroom.pipelines.publishing.parquet_shards import ShardWriter, Shipped
from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.records import ImageRef, Reject, Sample, VideoRef, from_row, to_row
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.records.samples import LICENCE_REMEDY, bare_sample
from darkroom.pipelines.selection.decontamination import read_benchmarks
from darkroom.pipelines.selection.sampling import ALL_FOR_TRAINING, SPLITS, Split, Splits, grouped
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.atomic_write import MARKER, remove_folder, replace_folder
from darkroom.pipelines.storage.row_files import RowSpill, RowStream
from darkroom.pipelines.storage.stage_runs import Outcome, StageReport, begin_work, run_stage
from darkroom.pipelines.storage.store_paths import StorePath, content
from darkroom.pipelines.storage.tables import Mask, TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

R = TypeVar("R")
_CARD = "README.md"
_SHOWN = ("sample_id", "image_refs", "n_question_images", "video_refs")
_SELECTING = ("publishing.judge_stats", "publishing.row_selection", "rl.rows", "selection")
_JUDGING = ("verification.grading", "vision")
ROWS_CODE = (*RUNNER_CODE, __name__, *(f"darkroom.pipelines.{name}" for name in (*_SELECTING, *_JUDGING)))
"""The code that decides which rows ship, besides the publication's own."""
_WRITING = ("cards", "features", "manifest", "parquet_shards", "judge_stats", "replay", "rendering")
FILES_CODE = (__name__, *(f"{__package__}.{module}" for module in _WRITING))
"""The code that decides the bytes of files and cards."""


class Unlicensed(UserError):
    """A dataset would be empty, as no licence is known of its rows."""


class Publication(ABC, Generic[R]):
    """One dataset of a workspace: a table of the rows that ship, and a folder with their files."""

    record: ClassVar[type[Any]]
    """The type of ``R``."""
    kind: ClassVar[Kind]
    stage: ClassVar[str]
    """What its rejects name."""
    workspace: Workspace
    screening: Screening | None
    validation_share: float
    shard_bytes: int

    @property
    @abstractmethod
    def key(self) -> TableKey:
        """The table of the rows that ship."""

    @property
    @abstractmethod
    def folder(self) -> StorePath:
        """The dataset's folder."""

    @abstractmethod
    def inputs(self) -> str:
        """Digest of all that decides the table."""

    @abstractmethod
    def file_inputs(self) -> str:
        """Digest of all that decides files and card; the table is complete when this is computed."""

    @abstractmethod
    def select(self) -> Selection:
        """Select the rows that ship; the others are rejected."""

    @abstractmethod
    def read(self, mask: Mask) -> Iterator[tuple[int, Any]]:
        """The rows of the mask (``R``, or what could not become one) with their positions, in order."""

    @abstractmethod
    def identify(self, row: Any) -> Mapping[str, str]:
        """The columns by which a reject names its row."""

    def split_samples(self) -> Iterator[Sample]:
        """All samples whose groups stay in one split."""
        return (sample for _, sample in self.shipped())

    def families(self) -> Iterable[Iterable[str]]:
        """The sample of each row that ships, for each family."""
        yield (sample.sample_id for _, sample in self.shipped())

    @abstractmethod
    def shipped(self) -> Iterator[tuple[R, Sample]]:
        """The rows of the table with their samples, which decide their splits."""

    @abstractmethod
    def shipped_row(self, row: R, sample: Sample) -> dict[str, Any]:
        """The row's columns in the files."""

    @abstractmethod
    def facts(self) -> RowFacts:
        """Facts for the card, of no row yet."""

    @abstractmethod
    def card_facts(self, facts: Any, folder: Path) -> dict[str, Any]:
        """Facts that only this kind of card states, by the template's names, with its ``title``, ``tags`` and
        ``authorship`` (see ``origins_in``); the parquet files in ``folder`` are complete when this is computed."""

    def card(self, facts: RowFacts, report: StageReport, folder: Path) -> dict[str, Any]:
        """All facts of the card as JSON, of complete parquet files in ``folder``."""
        own, listed = self.card_facts(facts, folder), self.workspace.benchmarks
        own["benchmarks"] = [benchmark.name for benchmark in read_benchmarks(listed)] if listed.exists() else []
        own |= {"facts": facts.counted() | {"intake": facts.intake}, "reasons": report.reasons}
        languages = {source: name for source, name in self.languages.items() if source in facts.columns["source"]}
        stated: dict[str, Any] = json.loads(json.dumps(plain(own | {"languages": languages, "code": card_code()})))
        return stated

    @property
    def languages(self) -> Mapping[str, str]:
        """Languages of the questions, by source, where it is stated."""
        return Catalog(self.workspace.sources).languages()

    @cached_property
    def splits(self) -> Splits:
        """By groups that share an image, also one that was changed; the tables of all families are complete then."""
        if not self.validation_share:
            return ALL_FOR_TRAINING
        return grouped(
            self.split_samples(),
            validation_share=self.validation_share,
            same=self._screening.same_images(image for sample in self.split_samples() for image in sample.images),
            families=self.families(),
            published=self._published(),
        )

    def _published(self) -> Iterator[tuple[Split, Sample]]:
        """The split and wordless sample of each row that is published with this share, or was about to be."""
        for folder in (*dataset_folders(self.folder.parent), *self._part.parent.glob(".*.part")):
            facts = marker_facts(folder)
            if facts and facts.get("validation_share", self.validation_share) == self.validation_share:
                for split in SPLITS:
                    for row in read_files(dataset_files(folder, split=split), only=_SHOWN):
                        images = [from_row(ImageRef, ref) for ref in row["image_refs"][: row.get("n_question_images")]]
                        videos = tuple(from_row(VideoRef, ref) for ref in row["video_refs"])
                        yield split, bare_sample(row["sample_id"], "", tuple(images), videos=videos)

    @cached_property
    def _screening(self) -> Screening:
        return self.screening or Screening(self.workspace)

    def publish(self) -> tuple[StageReport, Shipped]:
        """Selects the rows and writes their files (without rows there is no folder), unless their inputs are unchanged.
        The folder is replaced whole: an interrupted run leaves the earlier one, or none while it is renamed, and the
        next run finishes. Raises ``TableMissing``, and ``Unlicensed``, which leaves the earlier dataset."""
        report = self.make_table()
        n = 0 if report.n_out or Reason.NOT_SELECTED in report.reasons else report.reasons.get(Reason.LICENCE_UNKNOWN)
        if n:
            name = f"{self.folder.parent.name}/{self.folder.name}"
            raise Unlicensed(f"{name} would be empty: no licence is known of {n:,} rows; {LICENCE_REMEDY}")
        inputs = self.file_inputs()
        shipped = _read_marker(self.folder, inputs)
        return report, self._write_folder(report, inputs) if shipped is None else shipped

    def make_table(self) -> StageReport:
        """Select the rows that ship."""
        return run_stage(self.workspace.tables, self.key, self.record, inputs=self.inputs(), perform=self._outcome)

    def _outcome(self) -> Outcome[R]:
        selection = self.select()
        selection.forget_ids()
        counts = selection.counts
        return Outcome(
            rows=RowStream(selection.n_rows, lambda: (row for _, row in self.read(selection.mask))),
            rejects=RowStream(counts.total(), lambda: self._rejects(selection)),
            n_in=selection.n_in,
            counts=counts,
        )

    def _rejects(self, selection: Selection) -> Iterator[Reject]:
        """In the order in which they were rejected; the rows wait on disk, where they are read in their own."""
        spill = RowSpill(self.workspace.tables.scratch)
        places = np.zeros(selection.n_in, np.int64)
        for position, row in self.read(~selection.mask):
            places[position] = spill.add(row)
        for position, cause in selection.rejections():
            row = spill.read(int(places[position]))
            names = {"check": cause.check, **self.identify(row)}
            yield reject(cause.reason, cause.evidence, stage=self.stage, row=to_row(row), **names)

    def _write_folder(self, report: StageReport, inputs: str) -> Shipped:
        if self.workspace.tables.n_rows(self.key) or self.folder.exists():
            begin_work(self.key)
        if not self.workspace.tables.n_rows(self.key):
            # nothing can be said of no rows; what an earlier build shipped is no longer true
            remove_folder(self.folder)
            return Shipped(self.folder, 0, 0, 0)
        if _read_marker(part := self._part, inputs) is None:  # else a process was killed before this was in its place
            shutil.rmtree(part, ignore_errors=True)
            self._write_files(part, report, inputs)
        replace_folder(self.folder, part)
        shipped = _read_marker(self.folder, inputs)
        assert shipped is not None  # it was written just now
        return shipped

    @property
    def _part(self) -> Path:
        """The local folder that is to replace the dataset's."""
        beside = self.folder
        if not isinstance(beside, Path):
            beside = self.workspace.local.joinpath("datasets", beside.parent.name, beside.name)
        return beside.with_name(f".{beside.name}.part")

    def _write_files(self, folder: Path, report: StageReport, inputs: str) -> None:
        """Shards, card and marker; the training split has a file without rows, too."""
        facts = self.facts()
        with ExitStack() as stack:
            writers = {"train": stack.enter_context(self._writer(folder, "train"))}
            for row, sample in self.shipped():
                split = self.splits.of(sample.sample_id)
                if split not in writers:
                    writers[split] = stack.enter_context(self._writer(folder, split))
                writers[split].write(columns := self.shipped_row(row, sample))
                facts.count(columns, split)
                facts.add(row, sample)
        card = self.card(facts, report, folder)
        (folder / _CARD).write_text(render_card(self.kind, card), encoding="utf-8")
        names = ("n_rows", "n_images", "n_bytes")
        counts = {name: sum(getattr(writer, name) for writer in writers.values()) for name in names}
        noted = {"intake": facts.intake, "n_unlicensed": card["facts"]["n_unlicensed"], "origins": card["authorship"]}
        rest = {"validation_share": self.validation_share, **{name: fact for name, fact in noted.items() if fact}}
        manifest = write_manifest(folder, {split: writer.digests for split, writer in writers.items()}, card)
        marker = {"inputs": inputs, **counts, "manifest": manifest, **rest}
        (folder / MARKER).write_text(json.dumps(marker, sort_keys=True))

    def _writer(self, folder: Path, split: Split) -> ShardWriter:
        return ShardWriter(folder, self.kind, split, shard_bytes=self.shard_bytes)


def _read_marker(folder: StorePath, inputs: str) -> Shipped | None:
    """The dataset in ``folder`` if it is complete, from the same ``inputs``, with an unchanged card and manifest."""
    facts = marker_facts(folder)
    if facts.get("inputs") != inputs or not dataset_files(folder):
        return None
    manifest, card = (content(folder / name) or b"" for name in (MANIFEST, _CARD))
    if digest_bytes(manifest) != facts["manifest"] or json.loads(manifest)["files"][_CARD] != digest_bytes(card):
        return None
    return Shipped(folder, facts["n_rows"], facts["n_images"], facts["n_bytes"])
