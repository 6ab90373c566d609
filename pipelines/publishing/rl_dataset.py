"""The RL dataset, ``datasets/rl/prompts``: the rows of all shards and of the people's campaign, each once, by quotas.

Near-duplicates across shards and rows of a benchmark are rejected; then every source is filled up to its quota,
balanced over category and difficulty (``pipelines/selection/stratified.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipelines.generation.stage import Shard, row_error
from pipelines.publishing.cards import rl_card
from pipelines.publishing.dataset_writer import (
    FILES_CODE,
    ROWS_CODE,
    Publication,
    Selection,
    benchmark_names,
    languages,
)
from pipelines.publishing.parquet_shards import Shipped, write_prompts
from pipelines.records import RLRow, Sample, to_row
from pipelines.records.digest import digest
from pipelines.records.reject_reasons import reject
from pipelines.records.stand_ins import Annotators
from pipelines.rl import candidates
from pipelines.rl.facts import STAGES, shards_with
from pipelines.rl.rows import annotated_row, public_rows, tables_of
from pipelines.rl.suitability import VOTES, agreement_in_words
from pipelines.selection.screening import Screening
from pipelines.selection.splits import Split, Splits, grouped
from pipelines.selection.stratified import Candidate
from pipelines.sources.catalog import Catalog, source_of
from pipelines.storage.stage import Outcome, StageReport, code_digest
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace

KEY = TableKey(("rl_dataset",), "all")
ANNOTATED = "annotated"
"""The name under which people's rows have a quota, whatever their campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How much of what. ``quotas``: rows by source, or ``annotated``; a source without one gives all that it has.

    ``n_rows``: rows in all, taken from what the quotas leave; None: all of it.
    """

    quotas: Mapping[str, int] = field(default_factory=dict)
    n_rows: int | None = None
    validation_share: float = 0.05


def rl_folder(workspace: Workspace) -> Path:
    """The folder of the RL dataset."""
    return workspace.dataset("rl", "prompts")


@dataclass
class RlDataset(Publication[RLRow]):
    """The RL rows of those ``partitions`` that have candidates, and of the samples that people wrote."""

    record = RLRow
    workspace: Workspace
    partitions: Sequence[str]
    annotated: Sequence[Sample]
    mix: Mix
    screening: Screening
    annotators: Annotators = "people"
    """Who wrote ``annotated``."""
    from_drafts: frozenset[str] = frozenset()
    """Those of them that began as a policy's draft, by id."""

    @property
    def key(self) -> TableKey:
        return KEY

    @property
    def folder(self) -> Path:
        return rl_folder(self.workspace)

    def inputs(self) -> str:
        """Digest of the shards' tables, the campaign's samples and the quotas."""
        tables, mix = self.workspace.tables, self.mix
        fingerprints = [[str(key), tables.fingerprint(key)] for shard in self._shards for key in tables_of(shard)]
        annotated = [sample.sample_id for sample in self.annotated]
        settings = [dict(mix.quotas), mix.n_rows]
        return digest(
            [fingerprints, annotated, settings, self.screening.fingerprint, code_digest(*ROWS_CODE, __name__)]
        )

    def file_inputs(self) -> str:
        """Digest of the table and of the stages' facts that the card shows."""
        tables = self.workspace.tables
        keys = [shard.key(asset) for asset in STAGES for shard in shards_with(self.workspace, self.partitions, asset)]
        facts = [[str(key), tables.facts(key)] for key in keys]
        cards = [self._agreement, self.annotators, sorted(self.from_drafts), languages(self.workspace)]
        stated = Catalog(self.workspace.sources).visual_search()
        rest = [self.mix.validation_share, *cards, stated, code_digest(*FILES_CODE, __name__)]
        return digest([tables.fingerprint(KEY), tables.facts(KEY), facts, *rest])

    def select(self) -> Outcome[RLRow]:
        """Each question once, screened, up to the quotas."""
        selection, n_in = self._gathered()
        samples = [row.sample for row in selection.rows.values()]
        for sample_id, error in self.screening.screen_samples("rl_dataset", samples).items():
            selection.drop(sample_id, error)
        by_source: dict[str, list[RLRow]] = {}
        for row in selection.rows.values():
            by_source.setdefault(ANNOTATED if row.origin == "annotated" else row.sample.source, []).append(row)
        for source, rows in by_source.items():
            if source in self.mix.quotas:
                selection.fill_quota(_candidates(rows), self.mix.quotas[source], of=f"the quota of {source}")
        if self.mix.n_rows is not None:
            selection.fill_quota(_candidates(selection.rows.values()), self.mix.n_rows, of="the size of the dataset")
        return Outcome(list(selection.rows.values()), selection.rejects, n_in)

    def splits(self, rows: Sequence[RLRow]) -> Splits:
        share = self.mix.validation_share
        same = self.screening.same_images(image for row in rows for image in row.sample.images) if share else {}
        return grouped((row.sample for row in rows), validation_share=share, same=same)

    def sample_of(self, row: RLRow) -> Sample:
        return row.sample

    def write(self, rows: Sequence[RLRow], split: Split) -> Shipped:
        stated = Catalog(self.workspace.sources).visual_search()
        return write_prompts(self.folder, rows, store=self.workspace.images, split=split, visual_search=stated)

    def card(self, rows: Sequence[RLRow], report: StageReport, n_by_split: Mapping[str, int]) -> str:
        return rl_card(
            self.workspace,
            self.partitions,
            rows,
            report,
            n_by_split=n_by_split,
            benchmarks=benchmark_names(self.workspace),
            agreement=self._agreement,
            annotators=self.annotators,
            from_drafts=self.from_drafts,
            languages=languages(self.workspace),
        )

    def _gathered(self) -> tuple[Selection[RLRow], int]:
        """The rows of all shards and of the campaign, each question once, and how many there were."""
        selection: Selection[RLRow] = Selection(KEY.asset[0], lambda row: _names(row.sample))
        public = [(row, shard.partition) for shard in self._shards for row in public_rows(shard)]
        for sample in self.annotated:  # first: of two near-duplicates, the one that people wrote stays
            try:
                _add(selection, annotated_row(sample), "the campaign")
            except Exception as error:  # noqa: BLE001  # sorted by row_error
                cause = row_error(error)
                names = _names(sample)
                selection.rejects.append(
                    reject(cause.reason, cause.evidence, stage=KEY.asset[0], row=to_row(sample), **names)
                )
        for row, partition in public:
            _add(selection, row, partition)
        return selection, len(public) + len(self.annotated)

    @cached_property
    def _shards(self) -> list[Shard]:
        shards = [Shard(self.workspace, partition) for partition in self.partitions]
        return [shard for shard in shards if self.workspace.tables.exists(shard.key(candidates.ASSET))]

    @cached_property
    def _agreement(self) -> str:
        shards = shards_with(self.workspace, self.partitions, VOTES)
        return agreement_in_words(shards, sorted({source_of(shard.partition) for shard in shards}))


def _add(selection: Selection[RLRow], row: RLRow, where: str) -> None:
    duplicate = f"an earlier shard holds the same question; this one is in {where}"
    selection.add(row.sample.sample_id, row, duplicate=duplicate)


def _candidates(rows: Iterable[RLRow]) -> list[Candidate]:
    return [Candidate(row.sample.sample_id, row.sample.category, row.difficulty) for row in rows]


def _names(sample: Sample) -> dict[str, str]:
    return {"source": sample.source, "source_row": sample.source_row, "sample_id": sample.sample_id}
