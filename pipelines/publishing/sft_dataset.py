"""The SFT dataset of one family: the trajectories of all partitions in one folder, each once, with its card.

A family's quota takes exactly so many rows (``pipelines/selection/stratified.py``); no image is in two splits, in any
family (``pipelines/selection/splits.py``).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pipelines.generation.funnel import funnel_of
from pipelines.generation.recipes import Recipe
from pipelines.generation.stage import SAMPLES
from pipelines.publishing.cards import sft_card
from pipelines.publishing.dataset_writer import (
    FILES_CODE,
    ROWS_CODE,
    Publication,
    Selection,
    benchmark_names,
    languages,
)
from pipelines.publishing.judge_stats import (
    acceptance,
    judge_stats_fingerprint,
    judge_stats_of,
    read_reviews,
    review_checks,
)
from pipelines.publishing.parquet_shards import Shipped, write_trajectories
from pipelines.publishing.release_facts import release_facts
from pipelines.publishing.replay import replay
from pipelines.records import Sample, Trajectory, to_row
from pipelines.records.digest import digest
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.selection.screening import Screening
from pipelines.selection.splits import Split, Splits, grouped
from pipelines.selection.stratified import Candidate, difficulty
from pipelines.storage.stage import Outcome, StageReport, code_digest
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace

ASSET = ("sft_dataset",)


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
    workspace: Workspace
    recipe: Recipe
    partitions: Sequence[str]
    n_rows: int | None = None
    validation_share: float = 0.0
    n_replayed: int | None = 0
    screening: Screening | None = None

    @property
    def table(self) -> str:
        """The family's table whose rows ship."""
        return "trajectories"

    @property
    def ablation(self) -> str:
        """For the card: which rows it has besides those that passed every check; empty for none."""
        return ""

    @property
    def key(self) -> TableKey:
        return TableKey(ASSET, self.recipe.family)

    @property
    def folder(self) -> Path:
        return self.workspace.dataset("sft", self.recipe.family)

    def inputs(self) -> str:
        """Digest of trajectories, samples, verdicts, reviews, recipe and settings."""
        tables, recipe = self.workspace.tables, self.recipe
        fingerprints = [
            [key.partition, tables.fingerprint(key), tables.fingerprint(TableKey(SAMPLES, key.partition))]
            for key in self._keys
        ]
        judging = judge_stats_fingerprint(tables, recipe.family, self._partitions)
        reviews = [to_row(review) for review in read_reviews(tables, recipe.family)]
        groups = self._all_splits.groups
        settings = [self.n_rows, self.validation_share, groups, self._screening.fingerprint, self.n_replayed]
        rest = [judging, reviews, code_digest(*ROWS_CODE, __name__), settings]
        return digest(["sft_dataset", recipe.family, recipe.digest, fingerprints, *rest])

    def file_inputs(self) -> str:
        """The table's, and the code that writes files and card."""
        return digest([self.inputs(), languages(self.workspace), code_digest(*FILES_CODE)])

    def select(self) -> Outcome[Trajectory]:
        """Each trajectory once, screened, reviewed by experts, up to the quota."""
        selection, n_in = self._gathered()
        pairs = [(self._samples[row.sample_id], row) for row in selection.rows.values()]
        for row_id, error in self._screening.screen(self.recipe.family, pairs).items():
            selection.drop(row_id, error)
        self._apply_reviews(selection)
        self._balance(selection)
        if self.n_rows is not None:
            pairs = [(self._samples[row.sample_id], row) for row in selection.rows.values()]
            candidates = [Candidate(row.trajectory_id, sample.category, difficulty(sample)) for sample, row in pairs]
            selection.fill_quota(candidates, self.n_rows, of=f"the quota of {self.recipe.family}")
        return Outcome(list(selection.rows.values()), selection.rejects, n_in)

    def splits(self, rows: Sequence[Trajectory]) -> Splits:
        """Those of all partitions' samples, whichever rows ship."""
        return self._all_splits

    def sample_of(self, row: Trajectory) -> Sample:
        return self._samples[row.sample_id]

    def write(self, rows: Sequence[Trajectory], split: Split) -> Shipped:
        pairs = ((self.sample_of(row), row) for row in rows)
        return write_trajectories(self.folder, pairs, store=self.workspace.images, split=split)

    def card(self, rows: Sequence[Trajectory], report: StageReport, n_by_split: Mapping[str, int]) -> str:
        """Facts of the family's stages, with a replay of what was written."""
        tables, family = self.workspace.tables, self.recipe.family
        return sft_card(
            self.recipe,
            rows,
            self._samples,
            report,
            n_by_split=n_by_split,
            funnel=funnel_of(tables, family, self._partitions),
            benchmarks=benchmark_names(self.workspace),
            replayed=None if self.n_replayed == 0 else replay([self.folder], limit=self.n_replayed),
            judging=judge_stats_of(tables, family, self._partitions),
            reviewed=acceptance(read_reviews(tables, family)),
            languages=languages(self.workspace),
            release=release_facts(tables, family, self._partitions) if self.recipe.writer == "released" else None,
            ablation=self.ablation,
        )

    def _gathered(self) -> tuple[Selection[Trajectory], int]:
        """The trajectories of all partitions, each once, and how many were read."""
        selection: Selection[Trajectory] = Selection("sft_dataset", self._identify)
        n_in = 0
        for key in self._keys:
            samples = self._read_samples(key.partition)
            for row in self.workspace.tables.read(key, Trajectory):
                n_in += 1
                if row.sample_id in samples or row.trajectory_id in selection.rows:
                    duplicate = f"an earlier partition holds the same trajectory; this one is in {key.partition}"
                    selection.add(row.trajectory_id, row, duplicate=duplicate)
                else:
                    mend = f"materialise {self.recipe.family} for that partition"
                    evidence = f"its sample is no longer in {key.partition}; {mend}"
                    selection.reject(row, RowError(Reason.STALE, evidence))
        return selection, n_in

    def _apply_reviews(self, selection: Selection[Trajectory]) -> None:
        """Adds the experts' check to reviewed rows, and rejects those that failed it."""
        for row_id, check in review_checks(read_reviews(self.workspace.tables, self.recipe.family)).items():
            if row_id in selection.rows:
                row = selection.rows[row_id]
                selection.rows[row_id] = replace(row, checks=(*row.checks, check))
                if not check.passed:
                    selection.drop(row_id, RowError(Reason.CHECK_FAILED, check.detail), check=check.name)

    def _balance(self, selection: Selection[Trajectory]) -> None:
        """Leaves as many rows of each kind as there are of the rarest, and its part of the quota at most."""
        kind_of = self.recipe.balanced_by
        if kind_of is None:
            return
        by_kind: dict[str, list[Candidate]] = defaultdict(list)
        for row in selection.rows.values():
            sample = self._samples[row.sample_id]
            by_kind[kind_of(row)].append(Candidate(row.trajectory_id, sample.category, difficulty(sample)))
        if len(by_kind) < 2:
            return
        n_each = min(map(len, by_kind.values()))
        if self.n_rows is not None:
            n_each = min(n_each, -(-self.n_rows // len(by_kind)))
        for kind, candidates in sorted(by_kind.items()):
            selection.fill_quota(candidates, n_each, of=f"the quota of rows {kind}, as many as of the rarest kind,")

    def _identify(self, row: Trajectory) -> Mapping[str, str]:
        return {"family": self.recipe.family, "sample_id": row.sample_id, "trajectory_id": row.trajectory_id}

    def _read_samples(self, partition: str) -> dict[str, Sample]:
        rows = self.workspace.tables.read(TableKey(SAMPLES, partition), Sample)
        return {sample.sample_id: sample for sample in rows}

    @cached_property
    def _screening(self) -> Screening:
        return self.screening or Screening(self.workspace)

    @cached_property
    def _keys(self) -> list[TableKey]:
        keys = [TableKey((self.recipe.family, self.table), partition) for partition in self.partitions]
        return [key for key in keys if self.workspace.tables.exists(key)]

    @cached_property
    def _partitions(self) -> list[str]:
        return [key.partition for key in self._keys]

    @cached_property
    def _samples(self) -> dict[str, Sample]:
        """The samples of the partitions with trajectories, by id."""
        return {
            name: sample for partition in self._partitions for name, sample in self._read_samples(partition).items()
        }

    @cached_property
    def _all_splits(self) -> Splits:
        """Over the samples of all partitions and so of all families: what one family trains on, none validates on."""
        exists = self.workspace.tables.exists
        partitions = [partition for partition in self.partitions if exists(TableKey(SAMPLES, partition))]
        samples = [sample for partition in partitions for sample in self._read_samples(partition).values()]
        images = (image for sample in samples for image in sample.images)
        same = self._screening.same_images(images) if self.validation_share else {}
        return grouped(samples, validation_share=self.validation_share, same=same)
