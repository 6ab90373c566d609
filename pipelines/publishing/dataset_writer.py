"""Publishing a dataset: select, screen and fill quotas, split, write parquet and card, then a marker of completion.

What differs between the SFT and the RL dataset is a ``Publication`` (``sft_dataset.py``, ``rl_dataset.py``). Every row
that does not ship is a reject with its reason.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pipelines.generation.stage import RUNNER_CODE
from pipelines.publishing.dataset_reader import MARKER, marker_facts
from pipelines.publishing.parquet_shards import Shipped, write_splits
from pipelines.records import Reject, Sample, to_row
from pipelines.records.digest import digest_bytes
from pipelines.records.reject_reasons import Reason, RowError, reject
from pipelines.selection.decontamination import read_benchmarks
from pipelines.selection.splits import Split, Splits
from pipelines.selection.stratified import Candidate, select
from pipelines.sources.catalog import Catalog
from pipelines.storage.stage import Outcome, StageReport, run_stage
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace

R = TypeVar("R")
_CARD = "README.md"
ROWS_CODE = (
    *RUNNER_CODE,
    __name__,
    "pipelines.publishing.judge_stats",
    "pipelines.rl.rows",
    "pipelines.selection",
    "pipelines.verification.grading",
    "pipelines.vision",
)
"""The code that decides which rows ship, besides the publication's own."""
FILES_CODE = (
    __name__,
    "pipelines.publishing.cards",
    "pipelines.publishing.features",
    "pipelines.publishing.parquet_shards",
    "pipelines.publishing.judge_stats",
    "pipelines.publishing.release_facts",
    "pipelines.publishing.replay",
    "pipelines.publishing.templates",
    "pipelines.publishing.text_charts",
)
"""The code that decides the bytes of files and cards."""


@dataclass
class Selection(Generic[R]):
    """Rows that still ship, by id, and the rejects so far. ``identify``: the columns by which a reject names a row."""

    stage: str
    identify: Callable[[R], Mapping[str, str]]
    rows: dict[str, R] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)

    def add(self, row_id: str, row: R, *, duplicate: str) -> None:
        """A row; one whose id is there already is rejected, with ``duplicate`` as the evidence."""
        if row_id in self.rows:
            self.reject(row, RowError(Reason.DUPLICATE, duplicate))
        else:
            self.rows[row_id] = row

    def reject(self, row: R, error: RowError, *, check: str = "") -> None:
        """A row that is not among ``rows``."""
        names = self.identify(row)
        self.rejects.append(
            reject(error.reason, error.evidence, stage=self.stage, row=to_row(row), check=check, **names)
        )

    def drop(self, row_id: str, error: RowError, *, check: str = "") -> None:
        """Rejects one of ``rows``."""
        self.reject(self.rows.pop(row_id), error, check=check)

    def fill_quota(self, candidates: Sequence[Candidate], n_rows: int, *, of: str) -> None:
        """Leaves ``n_rows`` of the candidates, balanced over category and difficulty."""
        selected = select(candidates, n_rows)
        for candidate in candidates:
            if candidate.row_id not in selected:
                evidence = f"{of} is {n_rows} rows, and others were selected"
                self.drop(candidate.row_id, RowError(Reason.NOT_SELECTED, evidence))


class Publication(ABC, Generic[R]):
    """One dataset of a workspace: a table of the rows that ship, and a folder with their files."""

    record: ClassVar[type[Any]]
    """The type of ``R``."""
    workspace: Workspace

    @property
    @abstractmethod
    def key(self) -> TableKey:
        """The table of the rows that ship."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The dataset's folder."""

    @abstractmethod
    def inputs(self) -> str:
        """Digest of all that decides the table."""

    @abstractmethod
    def file_inputs(self) -> str:
        """Digest of all that decides files and card; the table is complete when this is computed."""

    @abstractmethod
    def select(self) -> Outcome[R]:
        """The rows that ship, and the rejects."""

    @abstractmethod
    def splits(self, rows: Sequence[R]) -> Splits:
        """The groups of samples that stay in one split."""

    @abstractmethod
    def sample_of(self, row: R) -> Sample:
        """The sample that decides the row's split."""

    @abstractmethod
    def write(self, rows: Sequence[R], split: Split) -> Shipped:
        """Writes the parquet file of a split."""

    @abstractmethod
    def card(self, rows: Sequence[R], report: StageReport, n_by_split: Mapping[str, int]) -> str:
        """The card's text; the parquet files are complete when this is computed."""

    def publish(self) -> tuple[StageReport, Shipped]:
        """Selects the rows and writes their files; table and files are skipped when their inputs are unchanged.

        Without rows there is no folder.

        An interrupted run leaves no marker: the next one writes the folder again. Raises ``TableMissing``.
        """
        report = run_stage(self.workspace.tables, self.key, self.record, inputs=self.inputs(), perform=self.select)
        inputs = self.file_inputs()
        shipped = _read_marker(self.folder, inputs)
        return report, self._write_folder(report, inputs) if shipped is None else shipped

    def _write_folder(self, report: StageReport, inputs: str) -> Shipped:
        (self.folder / MARKER).unlink(missing_ok=True)
        rows: list[R] = self.workspace.tables.read(self.key, self.record)
        if not rows:  # nothing can be said of no rows; what an earlier build shipped is no longer true
            if self.folder.exists():
                shutil.rmtree(self.folder)
            return Shipped(self.folder, 0, 0, 0)
        splits = self.splits(rows)
        shipped, n_by_split = write_splits(
            self.folder, rows, self.write, split_of=lambda row: splits.of(self.sample_of(row).sample_id)
        )
        card = self.card(rows, report, n_by_split)
        (self.folder / _CARD).write_text(card)
        counts = {"n_rows": shipped.n_rows, "n_images": shipped.n_images, "n_bytes": shipped.n_bytes}
        marker = {"inputs": inputs, **counts, "card": digest_bytes(card.encode())}
        (self.folder / MARKER).write_text(json.dumps(marker, sort_keys=True))
        return shipped


def languages(workspace: Workspace) -> Mapping[str, str]:
    """Of the sources' questions, by source, as far as they state it."""
    return Catalog(workspace.sources).languages()


def benchmark_names(workspace: Workspace) -> list[str]:
    """The benchmarks that rows were compared with."""
    listed = workspace.benchmarks
    return [benchmark.name for benchmark in read_benchmarks(listed)] if listed.exists() else []


def _read_marker(folder: Path, inputs: str) -> Shipped | None:
    """What is in ``folder``, if it is complete, from the same ``inputs``, and its card is unchanged."""
    facts, card = marker_facts(folder), folder / _CARD
    if facts.get("inputs") != inputs or not any(folder.glob("*.parquet")) or not card.exists():
        return None
    if digest_bytes(card.read_bytes()) != facts.get("card"):
        return None
    return Shipped(folder, facts["n_rows"], facts["n_images"], facts["n_bytes"])
