"""The RL dataset, ``datasets/rl/prompts``: the rows of all shards and of the people's campaign, each once, without
near-duplicates and rows of a benchmark, by quotas that are balanced over category and difficulty."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.stage import Shard, row_error
from darkroom.pipelines.publishing.cards.row_facts import RlFacts, intake_choices
from darkroom.pipelines.publishing.dataset_writer import FILES_CODE, ROWS_CODE, Publication
from darkroom.pipelines.publishing.parquet_shards import SHARD_BYTES, prompt_row
from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.records import RLRow, Sample
from darkroom.pipelines.records.annotation import Annotators
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.rl import candidates, pass_rates, suitability
from darkroom.pipelines.rl.facts import STAGES, all_votes, polled, shards_with, stage_facts
from darkroom.pipelines.rl.rows import annotated_row, public_rows, tables_of
from darkroom.pipelines.selection.sampling import Candidate, Strata
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources.catalog import Catalog, source_of
from darkroom.pipelines.storage.row_files import RowStream
from darkroom.pipelines.storage.stage_runs import code_digest
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import Mask, TableKey
from darkroom.pipelines.storage.workspace import Workspace

KEY = TableKey(("rl_dataset",), "all")
RL_PROMPTS = ("rl", "prompts")
"""The dataset's name and config."""
ANNOTATED = "annotated"
"""The name under which people's rows have a quota, whatever their campaign."""


def rl_folder(workspace: Workspace) -> StorePath:
    return workspace.dataset(*RL_PROMPTS)


@dataclass
class RlDataset(Publication[RLRow]):
    """The RL rows of those ``partitions`` that have candidates, and of the samples that people wrote. ``quotas``: rows
    by source, or ``annotated``; a source without one gives all that it has. ``n_rows``: rows in all, taken from what
    the quotas leave; None: all of it."""

    record = RLRow
    kind = "prompts"
    stage = KEY.asset[0]
    workspace: Workspace
    partitions: Sequence[str]
    annotated: Sequence[Sample]
    screening: Screening
    annotators: Annotators = "people"
    """Who wrote ``annotated``."""
    from_drafts: frozenset[str] = frozenset()
    """Those of them that began as a policy's draft, by id."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    n_rows: int | None = None
    validation_share: float = 0.05
    shard_bytes: int = SHARD_BYTES

    key = KEY

    @property
    def folder(self) -> StorePath:
        return rl_folder(self.workspace)

    def inputs(self) -> str:
        tables = self.workspace.tables
        fingerprints = [[str(key), tables.fingerprint(key)] for shard in self._shards for key in tables_of(shard)]
        annotated = [sample.sample_id for sample in self.annotated]
        settings = [dict(self.quotas), self.n_rows, self.workspace.ships_unlicensed]
        rest = [settings, self.screening.fingerprint, code_digest(*ROWS_CODE, __name__)]
        return digest([fingerprints, annotated, *rest])

    def file_inputs(self) -> str:
        """Digest of the table and of the stages' facts that the card shows."""
        tables = self.workspace.tables
        keys = [shard.key(asset) for asset in STAGES for shard in shards_with(self.workspace, self.partitions, asset)]
        facts = [[str(key), tables.facts(key)] for key in keys]
        people = [self._agreement, self.annotators, sorted(self.from_drafts)]
        stated = [self.languages, self._intake_choices, self._stated]
        rest = [self.validation_share, self.shard_bytes, *people, *stated, code_digest(*FILES_CODE, __name__)]
        return digest([tables.fingerprint(KEY), tables.facts(KEY), facts, *rest])

    def select(self) -> Selection:
        """Each question once, screened, up to the quotas."""
        selection = self._gathered()
        samples = RowStream(selection.n_rows, lambda: (row.sample for _, row in self._read_rows(selection)))
        for sample_id, error in self.screening.screen_samples("rl_dataset", samples).items():
            selection.drop(sample_id, error)
        if self.quotas or self.n_rows is not None:
            self._apply_quotas(selection)
        return selection

    def read(self, mask: Mask) -> Iterator[tuple[int, RLRow | Sample]]:
        """Annotated rows come first: of two near-duplicates, theirs stays. A sample is a row without a grader."""
        for position, sample in enumerate(self.annotated):
            if mask[position]:
                annotated = _annotated(sample)
                yield position, sample if isinstance(annotated, RowError) else annotated
        public = (row for shard in self._shards for row in public_rows(shard))
        yield from ((place, row) for place, row in enumerate(public, len(self.annotated)) if mask[place])

    def identify(self, row: RLRow | Sample) -> Mapping[str, str]:
        sample = row if isinstance(row, Sample) else row.sample
        return {"source": sample.source, "source_row": sample.source_row, "sample_id": sample.sample_id}

    def shipped(self) -> Iterator[tuple[RLRow, Sample]]:
        return ((row, row.sample) for row in self.workspace.tables.stream(KEY, RLRow))

    def shipped_row(self, row: RLRow, sample: Sample) -> dict[str, Any]:
        return prompt_row(row, self.workspace.images, self._stated)

    def facts(self) -> RlFacts:
        own = ("workspace", "partitions", "annotators", "from_drafts")
        return RlFacts(choices=self._intake_choices, **{name: getattr(self, name) for name in own})

    def card_facts(self, facts: RlFacts, folder: Path) -> dict[str, Any]:
        workspace = self.workspace
        return {
            "title": "Darkroom RL prompts",
            "tags": ["reinforcement-learning"],
            "stages": stage_facts(workspace, self.partitions),
            "solved": polled(all_votes(workspace, self.partitions, pass_rates.ASSET)),
            "voted": polled(all_votes(workspace, self.partitions, suitability.VOTES)),
            "agreement": self._agreement,
            "origins": facts.origins,
            "authorship": facts.origins_in_words,
        }

    def _gathered(self) -> Selection:
        selection = Selection(ships_unlicensed=self.workspace.ships_unlicensed)
        for sample in self.annotated:
            row = _annotated(sample)
            if isinstance(row, RowError):
                selection.reject(row)
            else:
                selection.add(sample.sample_id, sample, duplicate=_DUPLICATE.format("the campaign"))
        for shard in self._shards:
            for public in public_rows(shard):
                selection.add(public.sample.sample_id, public.sample, duplicate=_DUPLICATE.format(shard.partition))
        return selection

    def _read_rows(self, selection: Selection) -> Iterator[tuple[int, RLRow]]:
        return ((position, row) for position, row in self.read(selection.mask) if isinstance(row, RLRow))

    def _apply_quotas(self, selection: Selection) -> None:
        by_source: dict[str, Strata] = defaultdict(Strata)
        for position, row in self._read_rows(selection):
            by_source[ANNOTATED if row.origin == "annotated" else row.sample.source].add(_candidate(row), position)
        for source, candidates_of in by_source.items():
            if source in self.quotas:
                selection.fill_quota(candidates_of, self.quotas[source], of=f"the quota of {source}")
        if self.n_rows is not None:
            candidates_left = Strata()
            for position, row in self._read_rows(selection):
                candidates_left.add(_candidate(row), position)
            selection.fill_quota(candidates_left, self.n_rows, of="the size of the dataset")

    @cached_property
    def _shards(self) -> list[Shard]:
        return shards_with(self.workspace, self.partitions, candidates.ASSET)

    @cached_property
    def _intake_choices(self) -> list[str]:
        return intake_choices(self.workspace.tables, self.partitions)

    @cached_property
    def _agreement(self) -> str:
        shards = shards_with(self.workspace, self.partitions, suitability.VOTES)
        return suitability.agreement_in_words(shards, sorted({source_of(shard.partition) for shard in shards}))

    @cached_property
    def _stated(self) -> Mapping[str, bool]:
        """By source, whether its questions are visual search."""
        return Catalog(self.workspace.sources).visual_search()


_DUPLICATE = "an earlier shard holds the same question; this one is in {}"


def _candidate(row: RLRow) -> Candidate:
    return Candidate(row.sample.sample_id, row.sample.category, row.difficulty)


def _annotated(sample: Sample) -> RLRow | RowError:
    try:
        return annotated_row(sample)
    except Exception as error:  # noqa: BLE001  # sorted by row_error
        return row_error(error)
