"""The SFT dataset of one family: the trajectories of all partitions in one folder, each once, with its card. Quotas
take exactly so many rows, and no image is in two splits, in any family (``pipelines/selection/sampling.py``)."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from darkroom.pipelines.generation.funnel import funnel_of
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.cards import in_words
from darkroom.pipelines.publishing.cards.row_facts import RowFacts, intake_choices, release_facts
from darkroom.pipelines.publishing.dataset_writer import FILES_CODE, ROWS_CODE, Publication
from darkroom.pipelines.publishing.judge_stats import (
    acceptance,
    judge_stats_fingerprint,
    judge_stats_of,
    origins_of,
    read_reviews,
    review_checks,
)
from darkroom.pipelines.publishing.parquet_shards import SHARD_BYTES, trajectory_row
from darkroom.pipelines.publishing.replay import replay
from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.records import Check, Sample, Trajectory, to_row
from darkroom.pipelines.records.digest import digest, key64
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import is_licensed
from darkroom.pipelines.selection.sampling import Candidate, Strata, difficulty
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.storage.row_files import KeyedSpill, RowStream
from darkroom.pipelines.storage.stage_runs import code_digest
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import Mask, TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace

ASSET = ("sft_dataset",)


class SampleJoin:
    """``join[sample_id]``, from disk; of a sample that several partitions hold, the last one's with a licence."""

    def __init__(self, tables: Tables, partitions: Sequence[str]) -> None:
        self._samples = KeyedSpill(tables.scratch)
        for partition in partitions:
            for sample in tables.stream(TableKey(SAMPLES, partition), Sample):
                if is_licensed(sample.license) or self._samples.get(key64(sample.sample_id)) is None:
                    self._samples.add(key64(sample.sample_id), sample)

    def __getitem__(self, sample_id: str) -> Sample:
        """Raises ``KeyError`` for a sample that no partition holds."""
        sample: Sample | None = self._samples.get(key64(sample_id))
        if sample is None:
            raise KeyError(sample_id)
        return sample


@dataclass
class SftDataset(Publication[Trajectory]):
    """The family's trajectories of those ``partitions`` that are materialised, in their order.

    A trajectory that an earlier partition holds as well (two sources with the same sample) is a ``duplicate`` reject;
    beyond ``n_rows`` (None: all) it is ``not_selected``. ``screening`` rejects near-duplicates and rows of benchmarks;
    pass the same one for all families. The first ``n_replayed`` rows (None: all) are executed once more from what was
    written, and the card says how many came out the same.

    >>> SftDataset(workspace, load_recipes()["crop"], ["demo-0000"]).publish()
    """

    record = Trajectory
    kind = "trajectories"
    stage = "sft_dataset"
    workspace: Workspace
    recipe: Recipe
    partitions: Sequence[str]
    n_rows: int | None = None
    validation_share: float = 0.0
    n_replayed: int | None = 0
    screening: Screening | None = None
    shard_bytes: int = SHARD_BYTES
    _reviewed: dict[int, Check] = field(default_factory=dict, init=False, repr=False)
    """The experts' check of reviewed rows, by position."""

    @property
    def key(self) -> TableKey:
        return TableKey(ASSET, self.recipe.family)

    @property
    def folder(self) -> StorePath:
        return self.workspace.dataset("sft", self.recipe.family)

    def inputs(self) -> str:
        tables, recipe = self.workspace.tables, self.recipe
        fingerprints = [
            [key.partition, tables.fingerprint(key), tables.fingerprint(TableKey(SAMPLES, key.partition))]
            for key in self._keys
        ]
        judging = judge_stats_fingerprint(tables, recipe.family, self._partitions)
        reviews = [to_row(review) for review in read_reviews(tables, recipe.family)]
        settings = [self.n_rows, self.workspace.ships_unlicensed]
        rest = [judging, reviews, code_digest(*ROWS_CODE, __name__), *settings, self._screening.fingerprint]
        return digest(["sft_dataset", recipe.family, recipe.digest, fingerprints, *rest])

    def file_inputs(self) -> str:
        """The table's, the splits, and the code that writes files and card."""
        cards = [self.languages, self._intake_choices, self.n_replayed]
        splits = [self.splits.of(name) for (name,) in self.workspace.tables.columns(self.key, "sample_id")]
        return digest([self.inputs(), *cards, splits, self.shard_bytes, code_digest(*FILES_CODE)])

    def select(self) -> Selection:
        """Each trajectory once, screened, reviewed by experts, up to the quota."""
        self._reviewed.clear()
        selection = self._gathered()
        pairs = RowStream(selection.n_rows, lambda: self._pairs(selection))
        for row_id, error in self._screening.screen(self.recipe.family, pairs).items():
            selection.drop(row_id, error)
        self._apply_reviews(selection)
        if self.recipe.balanced_by is not None:
            self._balance(selection, self.recipe.balanced_by)
        if self.n_rows is not None:
            self._fill_quota(selection, self.n_rows)
        return selection

    def read(self, mask: Mask) -> Iterator[tuple[int, Trajectory]]:
        begin = 0
        for key in self._keys:
            end = begin + self.workspace.tables.n_rows(key)
            own = mask[begin:end]
            rows = self.workspace.tables.stream(key, Trajectory, mask=own) if own.any() else ()
            for position, row in zip((begin + np.flatnonzero(own)).tolist(), rows, strict=True):
                check = self._reviewed.get(position)
                yield position, row if check is None else replace(row, checks=(*row.checks, check))
            begin = end

    def identify(self, row: Trajectory) -> Mapping[str, str]:
        return {"family": self.recipe.family, "sample_id": row.sample_id, "trajectory_id": row.trajectory_id}

    def split_samples(self) -> Iterator[Sample]:
        """Samples of all partitions and so of all families: what one family trains on, none validates on."""
        for key in self.workspace.tables.existing(TableKey(SAMPLES, partition) for partition in self.partitions):
            yield from self.workspace.tables.stream(key, Sample)

    def families(self) -> Iterator[Iterator[str]]:
        for key in self.workspace.tables.keys(self.key.asset):
            yield (sample_id for (sample_id,) in self.workspace.tables.columns(key, "sample_id"))

    def shipped(self) -> Iterator[tuple[Trajectory, Sample]]:
        for row in self.workspace.tables.stream(self.key, Trajectory):
            yield row, self._samples[row.sample_id]

    def shipped_row(self, row: Trajectory, sample: Sample) -> dict[str, Any]:
        return trajectory_row(sample, row, self.workspace.images)

    def facts(self) -> RowFacts:
        return RowFacts(choices=self._intake_choices)

    def card_facts(self, facts: RowFacts, folder: Path) -> dict[str, Any]:
        """Facts of the family's stages, with a replay of what was written."""
        tables, recipe, family = self.workspace.tables, self.recipe, self.recipe.family
        return {
            "title": f"Darkroom SFT: {family}",
            "tags": [family, recipe.protocol.name],
            "recipe": {"family": family, "description": recipe.description, "loss_policy": recipe.loss_policy},
            "protocol": recipe.protocol.name,
            "checks": [{"name": c.name, "version": c.version, "says": in_words(c)} for c in recipe.checks],
            "funnel": funnel_of(tables, family, self._partitions),
            "replayed": None if self.n_replayed == 0 else replay([folder], limit=self.n_replayed),
            "judging": judge_stats_of(tables, family, self._partitions),
            "reviewed": acceptance(read_reviews(tables, family)),
            "release": release_facts(tables, family, self._partitions) if recipe.writer == "released" else None,
            "authorship": origins_of(tables, self.key, self._partitions),
        }

    def _gathered(self) -> Selection:
        selection, tables = Selection(ships_unlicensed=self.workspace.ships_unlicensed), self.workspace.tables
        for key in self._keys:
            samples = {name for (name,) in tables.columns(TableKey(SAMPLES, key.partition), "sample_id")}
            duplicate = f"an earlier partition holds the same trajectory; this one is in {key.partition}"
            mend = f"materialise {self.recipe.family} for that partition"
            stale = RowError(Reason.STALE, f"its sample is no longer in {key.partition}; {mend}")
            for row_id, sample_id in tables.columns(key, "trajectory_id", "sample_id"):
                if sample_id in samples or selection.place(row_id) is not None:
                    selection.add(row_id, self._samples[sample_id], duplicate=duplicate)
                else:
                    selection.reject(stale)
        return selection

    def _pairs(self, selection: Selection) -> Iterator[tuple[Sample, Trajectory]]:
        return ((self._samples[row.sample_id], row) for _, row in self.read(selection.mask))

    def _apply_reviews(self, selection: Selection) -> None:
        """Adds the experts' check to reviewed rows, and rejects those that failed it."""
        for row_id, check in review_checks(read_reviews(self.workspace.tables, self.recipe.family)).items():
            if (position := selection.place(row_id)) is not None:
                self._reviewed[position] = check
                if not check.passed:
                    selection.drop(row_id, RowError(Reason.CHECK_FAILED, check.detail), check=check.name)

    def _balance(self, selection: Selection, kind_of: Callable[[Trajectory], str]) -> None:
        """Leaves as many rows of each kind as there are of the rarest, and its part of the quota at most."""
        by_kind: dict[str, Strata] = defaultdict(Strata)
        for position, row in self.read(selection.mask):
            by_kind[kind_of(row)].add(self._candidate(row.trajectory_id, row.sample_id), position)
        if len(by_kind) < 2:
            return
        n_each = min(map(len, by_kind.values()))
        if self.n_rows is not None:
            n_each = min(n_each, -(-self.n_rows // len(by_kind)))
        for kind, candidates in sorted(by_kind.items()):
            selection.fill_quota(candidates, n_each, of=f"the quota of rows {kind}, as many as of the rarest kind,")

    def _fill_quota(self, selection: Selection, n_rows: int) -> None:
        candidates, mask = Strata(), selection.mask
        ids = (row for key in self._keys for row in self.workspace.tables.columns(key, "trajectory_id", "sample_id"))
        for position, (row_id, sample_id) in enumerate(ids):
            if mask[position]:
                candidates.add(self._candidate(row_id, sample_id), position)
        selection.fill_quota(candidates, n_rows, of=f"the quota of {self.recipe.family}")

    def _candidate(self, row_id: str, sample_id: str) -> Candidate:
        sample = self._samples[sample_id]
        return Candidate(row_id, sample.category, difficulty(sample))

    @cached_property
    def _keys(self) -> list[TableKey]:
        keys = [TableKey((self.recipe.family, "trajectories"), partition) for partition in self.partitions]
        return self.workspace.tables.existing(keys)

    @cached_property
    def _partitions(self) -> list[str]:
        return [key.partition for key in self._keys]

    @cached_property
    def _intake_choices(self) -> list[str]:
        return intake_choices(self.workspace.tables, self._partitions)

    @cached_property
    def _samples(self) -> SampleJoin:
        return SampleJoin(self.workspace.tables, self._partitions)
