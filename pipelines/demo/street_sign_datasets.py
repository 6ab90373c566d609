"""Street signs on the demo's walls, and the datasets of which a tiny model learns to look at them.

    python -m darkroom.pipelines.demo.street_sign_datasets

The walls, what hangs on them and where it hangs are the embedded source's (``pipelines/demo/images/scenes.py``). A
question names a region of a piece of a wall, because a model of a quarter of a million weights cannot search a wall.

The datasets are written to ``datasets/street_signs/`` of DARKROOM_HOME: ``train`` for SFT, ``questions`` for GRPO and
``held_out``, each of other walls. Their rows pass intake, the family ``crop`` and publishing like all rows. The
trajectories have few words: a line that recurs is one token, and left to be learned are copying four numbers into code
and telling five colours apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar, NamedTuple

from PIL import Image

from darkroom.pipelines.demo.images import DEMO_VERSION
from darkroom.pipelines.demo.images.material import TEXTURE_LICENSE, image_row, joint_license, jpeg_bytes
from darkroom.pipelines.demo.images.scenes import TOPICS, Placed, make_wall
from darkroom.pipelines.demo.images.walls import lit
from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.recipes import MARGIN, Recipe, load_recipes
from darkroom.pipelines.models.policies import OraclePolicy
from darkroom.pipelines.models.policies.embedded import Script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

PIECE = (480, 360)
VIEWS = 2
LEAST = 100
"""No coordinate is smaller: numbers of three digits are all alike to a reader that counts tokens."""
_NAMED = re.compile(r"region (\d+), (\d+), (\d+), (\d+)")
_SIGNS = next(number for number, topic in enumerate(TOPICS) if topic.kind == "sign")


class HungSign(NamedTuple):
    """A sign on its wall: the wall's image, what is cropped of it, and the licence of all that is on it."""

    name: str
    wall: Image.Image
    sign: Placed
    region: Box
    license: str


@dataclass(frozen=True, slots=True)
class StreetSigns:
    """``n_walls`` walls with three signs each, but those at the very edge; another ``seed`` hangs other walls."""

    n_walls: int
    seed: int
    views: int = VIEWS
    """Pieces per sign, cut at different places."""

    name: ClassVar[str] = "street_signs"
    n_shards: ClassVar[int] = 1

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters and of the demo that they are made with."""
        return digest([DEMO_VERSION, self.n_walls, self.seed, PIECE, self.views, LEAST])

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for hung_sign in hung_signs(self.n_walls, self.seed):
            for view in range(self.views):
                yield _piece(f"{hung_sign.name}/{view}", hung_sign)


def hung_signs(n_walls: int, seed: int) -> Iterator[HungSign]:
    """The signs of all walls, but those whose region lies at the very edge."""
    for number in range(_SIGNS, _SIGNS + n_walls * len(TOPICS), len(TOPICS)):
        wall = make_wall(number, seed)
        image = lit(wall.scene.canvas, wall.rng)
        license = joint_license([TEXTURE_LICENSE, *(photograph.license for photograph in wall.photographs)])
        for place, sign in enumerate(wall.scene.placed["sign"]):
            region = sign.box.grown(max(8, round(MARGIN * max(sign.box.width, sign.box.height))))
            if min(region) >= LEAST and region.fits(*image.size):
                yield HungSign(f"wall/{seed}/{number}/{place}", image, sign, region, license)


def named_region(question: str) -> Box:
    """The region that a question names. Raises ``ValueError`` for a question without one."""
    region = _NAMED.search(question)
    if region is None:
        raise ValueError(f"no region in {question!r}")
    return Box(*map(int, region.groups()))


def _piece(row: str, hung_sign: HungSign) -> SourceRow:
    part = view_of(hung_sign, PIECE, Random(row))
    region = ", ".join(map(str, moved(hung_sign.region, part)))
    question = f"What colour is the street sign in the region {region}?"
    return sign_row(row, question, hung_sign, hung_sign.wall.crop(part), moved(hung_sign.sign.box, part))


def sign_row(row: str, question: str, hung_sign: HungSign, image: Image.Image, box: Box) -> SourceRow:
    """The row of a question about a sign, which is at ``box`` of ``image``."""
    target, license = hung_sign.sign.target, hung_sign.license
    truth = Truth(boxes=(TruthBox(target.label, *box),))
    return image_row(row, jpeg_bytes(image), question, target.look, truth, category="attribute", license=license)


def view_of(hung_sign: HungSign, size: tuple[int, int], chance: Random) -> Box:
    """Cut a piece so that it holds the region, as far from its left and upper edge as ``LEAST``."""
    region, wall = hung_sign.region, hung_sign.wall
    x = chance.randint(max(0, region.x2 - size[0]), min(region.x1 - LEAST, wall.width - size[0]))
    y = chance.randint(max(0, region.y2 - size[1]), min(region.y1 - LEAST, wall.height - size[1]))
    return Box(x, y, x + size[0], y + size[1])


def moved(box: Box, part: Box) -> Box:
    return Box(box.x1 - part.x1, box.y1 - part.y1, box.x2 - part.x1, box.y2 - part.y1)


FAMILY = "crop"
DATASETS = {"train": StreetSigns(28, 1000), "questions": StreetSigns(4, 2000), "held_out": StreetSigns(6, 6000)}
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
    workspace: Workspace, recipe: Recipe, policy: OraclePolicy, partition: str, *, kind: type[SftDataset] = SftDataset
) -> StorePath:
    """A partition's samples through all stages of the family; returns the folder of the published dataset."""
    rows = Family(workspace, recipe, partition)
    rows.draft(policy)
    rows.run(policy)
    rows.check()
    rows.keep()
    rows.collect_rejects()
    _, published = kind(workspace, recipe, [partition]).publish()
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
            ship_trajectories(workspace, recipe, policy, partition, kind=StreetSignDataset)


if __name__ == "__main__":
    main()
