"""The training dataset of a turn of the flywheel (``pipelines/generation/flywheel.py``).

Three datasets follow from the same drafts. ``kept`` is the product: the rows that passed every check. The other two are
for ablation only, and their cards say so: ``executed`` has every row whose code ran, ``unfiltered`` every row that
could be read to its answer, whatever the checks say.
"""

from dataclasses import dataclass
from typing import Literal

from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Trajectory
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.stage import code_digest
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey

Keeps = Literal["kept", "executed", "unfiltered"]
_ABLATIONS = {
    "kept": "",
    "executed": "every row whose code ran is in it, also those that failed checks",
    "unfiltered": "every row that could be read to its answer is in it, also those whose code or checks failed",
}


@dataclass
class TurnDataset(SftDataset):
    """The rows of the one partition in ``partitions``.

    >>> TurnDataset(workspace, recipe, ["turn-1"], keeps="executed").publish()
    """

    keeps: Keeps = "kept"

    @property
    def table(self) -> str:
        """Rejected rows are in the verdicts, with the checks that they failed."""
        return "trajectories" if self.keeps == "kept" else "verdicts"

    @property
    def ablation(self) -> str:
        return _ABLATIONS[self.keeps]

    @property
    def name(self) -> str:
        """``turn-1-kept``."""
        return f"{self.partitions[0]}-{self.keeps}"

    @property
    def key(self) -> TableKey:
        return TableKey(("flywheel", "dataset"), self.name)

    @property
    def folder(self) -> StorePath:
        return self.workspace.dataset("flywheel", self.name)

    def inputs(self) -> str:
        """The family's, and which rows are kept."""
        return digest([super().inputs(), self.keeps, code_digest(__name__)])

    def _gathered(self) -> Selection:
        selection = super()._gathered()
        if self.keeps == "executed":
            for row_id in [row.trajectory_id for _, row in self.read(selection.mask) if not code_ran(row)]:
                selection.drop(
                    row_id, RowError(Reason.CHECK_FAILED, "its code did not run to its end"), check="executes"
                )
        return selection


def code_ran(row: Trajectory) -> bool:
    """True if it wrote code and all of it ran without an error."""
    return bool(row.rounds) and all(turn.observation.status == "ok" for turn in row.rounds)
