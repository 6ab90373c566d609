"""The flywheel: a student writes on new questions, sandbox and checks keep rows, SFT on them gives the next student.

python examples/flywheel.py photos data/checkpoints/sft 3 --epochs 1    # options of `train sft`; it resumes
"""

import argparse
import subprocess
from dataclasses import dataclass
from pathlib import Path

from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.recipes import load_recipes, without_hints
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.models.local_policy import LocalPolicy

RECIPE = without_hints(load_recipes()["crop"])


@dataclass
class TurnDataset(SftDataset):
    """The rows of one turn that passed every check, in a folder of their own."""

    @property
    def key(self) -> TableKey:
        return TableKey(("flywheel", "dataset"), self.partitions[0])

    @property
    def folder(self) -> StorePath:
        return self.workspace.dataset("flywheel", self.partitions[0])


def turn(workspace: Workspace, source: str, number: int, student: Path, max_pixels: int) -> tuple[Path, Path]:
    """The dataset and the checkpoint's folder of a turn; prints how many rows passed."""
    name = f"turn-{number}"
    intake(workspace, Catalog(workspace.sources).open(source), number - 1, name)
    family = Family(workspace, RECIPE, name)
    for write in (family.draft, family.run):
        write(LocalPolicy(student, workspace.images, batch_size=1, max_pixels=max_pixels))
    checked, kept, _ = family.check(), family.keep(), family.collect_rejects()
    print(f"{name}: {kept.n_out} of {checked.n_in} rows pass")
    TurnDataset(workspace, RECIPE, [name]).publish()
    return workspace.local_datasets("flywheel", name), workspace.checkpoint("flywheel") / name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind in {"source": str, "student": Path, "n_turns": int}.items():
        parser.add_argument(name, type=kind)
    parser.add_argument("--max-pixels", type=int, default=1_000_000)
    chosen, options = parser.parse_known_args()
    for number in range(1, chosen.n_turns + 1):
        with Workspace.from_environment() as workspace:
            dataset, output = turn(workspace, chosen.source, number, chosen.student, chosen.max_pixels)
        words = ["--dataset", dataset, "--model", chosen.student, "--output", output, "--max-pixels", chosen.max_pixels]
        subprocess.run(["darkroom", "train", "sft", *map(str, words), *options], check=True)
        chosen.student = output
