"""The datasets of which a tiny model learns to look: trajectories about street signs, and held-out questions.

    python -m darkroom.pipelines.demo.street_sign_datasets

They are written to ``datasets/street_signs/`` of DARKROOM_HOME: ``train`` for SFT, ``questions`` for GRPO and
``held_out``, each of other walls. Their rows pass intake, the family ``crop`` and publishing like all rows. The
trajectories have few words: a line that recurs is one token, and left to be learned are copying four numbers into code
and telling five colours apart.
"""

from pathlib import Path

from darkroom.pipelines.demo.images.street_signs import StreetSigns, named_region
from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.models.policies import OraclePolicy
from darkroom.pipelines.models.policies.embedded import Script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

FAMILY = "crop"
DATASETS = {
    "train": StreetSigns(28, 1000),
    "questions": StreetSigns(4, 2000),
    "held_out": StreetSigns(6, 6000),
}
"""By folder: how many walls with three signs each, and another seed for other walls. From 28 walls on, the colours of
the training rows are even; two pieces of each sign then teach as much as six of 16 walls (docs/reproductions.md)."""
CODE = """\
from PIL import Image

image = Image.open(image_path)
processed_path = "sign.png"
image.crop(({box})).save(processed_path)
print(processed_path)"""


class StreetSignDataset(SftDataset):
    """The family's rows of one partition, in a folder of their own: the product's datasets do not have them."""

    @property
    def key(self) -> TableKey:
        return TableKey(("street_signs",), self.partitions[0])

    @property
    def folder(self) -> StorePath:
        return self.workspace.dataset("street_signs", self.partitions[0].removeprefix("street_signs-"))


def policy_of(script: Script, recipe: Recipe, file: Path) -> OraclePolicy:
    """The policy that writes the rows of a family by the ``script`` that stands in ``file``."""
    return OraclePolicy(script, revision=digest([recipe.digest, digest_bytes(file.read_bytes())]))


def ship_trajectories(
    workspace: Workspace,
    recipe: Recipe,
    policy: OraclePolicy,
    partition: str,
    *,
    dataset: type[SftDataset] = SftDataset,
) -> StorePath:
    """A partition's samples through all stages of the family; returns the folder of the published dataset."""
    rows = Family(workspace, recipe, partition)
    rows.draft(policy)
    rows.run(policy)
    rows.check()
    rows.keep()
    rows.collect_rejects()
    _, published = dataset(workspace, recipe, [partition]).publish()
    return published.folder


def _crop(turn: CompletionRequest) -> str:
    box = ", ".join(map(str, named_region(turn.task.sample.question)))
    return Thyme().write_round("I look at the region.", CODE.format(box=box), first=True)


def _answer(turn: CompletionRequest) -> str:
    return Thyme().write_answer("The crop shows the sign.", turn.task.sample.answer, first=False)


FEW_WORDS = family_script(_crop, _answer)
"""Writes the trajectories."""


def main() -> None:
    """Makes what is missing."""
    recipe = load_recipes()[FAMILY]
    policy = policy_of(FEW_WORDS, recipe, Path(__file__))
    with Workspace.from_environment() as workspace:
        for name, source in DATASETS.items():
            partition = f"{source.name}-{name}"
            intake(workspace, source, 0, partition)
            ship_trajectories(workspace, recipe, policy, partition, dataset=StreetSignDataset)


if __name__ == "__main__":
    main()
