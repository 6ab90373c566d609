"""The pivots: every decision of the shipped trajectories that reaches its goal, with other actions that do not.

A rejected action is one that another rollout of the same sample executed after the very same prefix: of a row that
failed its checks, or an attempt that its own trajectory corrects. Nothing is executed again: what it showed is in the
tables. Splits are those of the shipped SFT datasets, so no image of a validation row is trained on.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.audit.known_truth import KnownTruth
from darkroom.pipelines.publishing.cards import pivot_card
from darkroom.pipelines.publishing.cards.row_facts import PivotFacts
from darkroom.pipelines.publishing.dataset_reader import dataset_files, map_in_threads
from darkroom.pipelines.publishing.dataset_writer import FILES_CODE, ROWS_CODE, Publication, languages
from darkroom.pipelines.publishing.parquet_shards import SHARD_BYTES
from darkroom.pipelines.publishing.pivots.decisions import Measure, TrajectoryStep, decisions
from darkroom.pipelines.publishing.pivots.rows import pivot_row
from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.publishing.sample_join import SampleJoin
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.digest import digest, key64
from darkroom.pipelines.records.pivots import Pivot
from darkroom.pipelines.selection.sampling import Split
from darkroom.pipelines.storage.row_files import RowSpill
from darkroom.pipelines.storage.stage import StageReport, code_digest
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import Mask, TableKey
from darkroom.pipelines.storage.workspace import Workspace

KEY = TableKey(("pivots",), "all")
PIVOTS = ("pivots", "decisions")
"""The dataset's name and config."""
_MOST_OTHERS = 16
"""Other actions after a prefix that are measured; more of the same rollouts say nothing more."""


@dataclass(frozen=True, slots=True)
class InheritedSplits:
    """The splits of other datasets, by their samples."""

    validation: frozenset[str]

    def of(self, sample_id: str) -> Split:
        return "validation" if sample_id in self.validation else "train"


@dataclass
class PivotDataset(Publication[Pivot, PivotFacts]):
    """The decisions of what ``families`` have shipped.

    A decision with the prefix and goal of an earlier one is a ``duplicate``; one whose goal nothing known decides is
    ``not_applicable``; one that does not reach it failed its check, whose name is the goal.
    """

    record = Pivot
    kind = "pivots"
    stage = KEY.asset[0]
    workspace: Workspace
    families: Sequence[str]
    partitions: Sequence[str]
    shard_bytes: int = SHARD_BYTES
    _rows: list[int] = field(default_factory=list, init=False, repr=False)
    """Where each row begins in the spill, by its position."""

    @property
    def key(self) -> TableKey:
        return KEY

    @property
    def folder(self) -> StorePath:
        return self.workspace.dataset(*PIVOTS)

    def inputs(self) -> str:
        """Digest of the shipped rows, of all rows with verdicts, and of the truth."""
        tables, names = self.workspace.tables, ("verdicts", "drafts")
        keys = [
            TableKey((family, name), shard) for family in self.families for name in names for shard in self.partitions
        ]
        keys += [TableKey(SAMPLES, shard) for shard in self.partitions]
        fingerprints = [[str(key), tables.fingerprint(key)] for key in (*self._shipped_keys, *tables.existing(keys))]
        return digest([fingerprints, code_digest(*ROWS_CODE, __package__, "darkroom.pipelines.verification")])

    def file_inputs(self) -> str:
        """The table's, the splits, and the code that writes files and card."""
        splits = sorted(self.splits().validation)
        rest = [languages(self.workspace), self.shard_bytes, code_digest(*FILES_CODE, __package__)]
        return digest([self.inputs(), splits, *rest])

    def select(self) -> Selection:
        """Measures every decision, and the other actions after its prefix."""
        selection = Selection()
        self._rows.clear()
        with KnownTruth(self.workspace) as truth:
            measure = Measure(truth)
            pairs = ((decision, self._others(decision)) for decision in self._decisions())
            for decision, measured in map_in_threads(pairs, measure):
                if isinstance(measured, Pivot):
                    selection.add(measured.pivot_id, duplicate="an earlier decision has the same prefix and goal")
                    self._rows.append(self._spill.add(measured))
                else:
                    row_id = digest([decision.trajectory.trajectory_id, decision.step])
                    selection.add(row_id, duplicate="an earlier row is the same trajectory")
                    if selection.place(row_id) is not None:
                        selection.drop(row_id, measured.error, check=measured.check)
                    self._rows.append(self._spill.add(decision))
        return selection

    def read(self, mask: Mask) -> Iterator[tuple[int, Pivot | TrajectoryStep]]:
        for position, begin in enumerate(self._rows):
            if mask[position]:
                yield position, self._spill.read(begin)

    def identify(self, row: Pivot | TrajectoryStep) -> Mapping[str, str]:
        source = row if isinstance(row, Pivot) else row.trajectory
        return {"family": source.family, "sample_id": source.sample_id, "trajectory_id": source.trajectory_id}

    def splits(self) -> InheritedSplits:
        """Those of the shipped files."""
        from darkroom.pipelines.publishing.table_search import columns_of

        files = [
            file
            for family in self.families
            for file in dataset_files(self.workspace.dataset("sft", family), split="validation")
        ]
        return InheritedSplits(frozenset(columns_of(files, "sample_id").collect()["sample_id"]))

    def shipped(self) -> Iterator[tuple[Pivot, Sample]]:
        samples = SampleJoin(self.workspace.tables, self._sampled)
        for row in self.workspace.tables.stream(KEY, Pivot):
            yield row, samples[row.sample_id]

    def shipped_row(self, row: Pivot, sample: Sample) -> dict[str, Any]:
        return pivot_row(row, sample, self.workspace.images)

    def facts(self) -> PivotFacts:
        return PivotFacts()

    def card(self, facts: PivotFacts, report: StageReport, n_by_split: Mapping[str, int], folder: Path) -> str:
        return pivot_card(facts, report, n_by_split=n_by_split, languages=languages(self.workspace))

    def _decisions(self) -> Iterator[TrajectoryStep]:
        for key in self._shipped_keys:
            for row in self.workspace.tables.stream(key, Trajectory):
                yield from decisions(row)

    def _others(self, decision: TrajectoryStep) -> list[TrajectoryStep]:
        """Other actions after its prefix, of any family, each once."""
        actions = {decision.action: decision}
        for begin in self._by_prefix.get(key64(decision.prefix), ()):
            step: TrajectoryStep = self._spill.read(begin)
            actions.setdefault(step.action, step)
        return list(actions.values())[1 : _MOST_OTHERS + 1]

    @cached_property
    def _by_prefix(self) -> Mapping[int, Sequence[int]]:
        """Where the decisions of all rows with verdicts begin in the spill."""
        keys = [TableKey((family, "verdicts"), shard) for family in self.families for shard in self.partitions]
        places: dict[int, list[int]] = defaultdict(list)
        for key in self.workspace.tables.existing(keys):
            for row in self.workspace.tables.stream(key, Trajectory):
                for decision in decisions(row):
                    places[key64(decision.prefix)].append(self._spill.add(decision))
        return places

    @cached_property
    def _spill(self) -> RowSpill:
        return RowSpill(self.workspace.tables.scratch)

    @cached_property
    def _shipped_keys(self) -> list[TableKey]:
        return self.workspace.tables.existing(TableKey(("sft_dataset",), family) for family in self.families)

    @cached_property
    def _sampled(self) -> list[str]:
        keys = (TableKey(SAMPLES, shard) for shard in self.partitions)
        return [key.partition for key in self.workspace.tables.existing(keys)]
