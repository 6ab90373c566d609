"""The rows of the learning proof: pieces of the demo's walls, each with one question about the colour of a street sign.

    python -m benchmarks.proof_rows data/learning_proof/train --walls 60 --seed 1000
    python -m benchmarks.proof_rows data/learning_proof/closeups --walls 60 --seed 1000 --closeups

The walls, what hangs on them and where it hangs are the embedded source's (``pipelines/demo/images/scenes.py``). A
question names the region, in pixels of the piece, because a model of a quarter of a million weights cannot search a
wall. What is left to learn: copy four numbers into a program, run it, and tell one of five colours from what it shows.

``--closeups`` makes rows that teach the colours alone, as every model knows them that one would start from: the region
is the image, and nothing has to be looked up in it.

Rows go the way of all rows: intake, the family ``crop`` (prepared, drafted, executed, checked, kept), ``publish``;
closeups go through the family ``direct``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from PIL import Image

from pipelines.demo.images import DEMO_VERSION
from pipelines.demo.images.material import TEXTURE_LICENSE, joint_license, jpeg_bytes
from pipelines.demo.images.scenes import TOPICS, Placed, hung
from pipelines.demo.images.walls import lit
from pipelines.generation.engine import Family, intake
from pipelines.generation.recipes import MARGIN, load_recipes
from pipelines.models.policies import oracle_policy
from pipelines.publishing.sft_dataset import SftDataset
from pipelines.records import Truth, TruthBox
from pipelines.records.digest import digest
from pipelines.records.geometry import Box
from pipelines.sources import SourceRow
from pipelines.storage.workspace import Workspace

PIECE = (480, 360)
VIEWS = 2
"""Pieces per sign, cut at different places."""
LEAST = 100
"""No coordinate is smaller: numbers of three digits are all alike to a reader that counts tokens."""
_SIGNS = next(number for number, topic in enumerate(TOPICS) if topic.kind == "sign")


@dataclass(frozen=True, slots=True)
class StreetSigns:
    """``n_walls`` walls with three signs each, but those at the very edge; another ``seed`` hangs other walls."""

    n_walls: int
    seed: int
    closeups: bool = False
    n_shards: int = 1

    @property
    def name(self) -> str:
        """Of the source."""
        return "street_sign_closeups" if self.closeups else "street_signs"

    @property
    def shard(self) -> str:
        """Name of the one shard."""
        return f"{self.name}-0000"

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters and of the demo that they are made with."""
        return digest([DEMO_VERSION, self.n_walls, self.seed, self.closeups, PIECE, VIEWS, LEAST])

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for number in range(_SIGNS, _SIGNS + self.n_walls * len(TOPICS), len(TOPICS)):
            wall = hung(number, self.seed)
            image = lit(wall.scene.canvas, wall.rng)
            license = joint_license([TEXTURE_LICENSE, *(photograph.license for photograph in wall.photographs)])
            for place, sign in enumerate(wall.scene.placed["sign"]):
                region = _region(sign)
                if min(region) < LEAST or not region.fits(*image.size):
                    continue
                if self.closeups:
                    yield _closeup(f"wall/{self.seed}/{number}/{place}", image, sign, region, license)
                    continue
                for view in range(VIEWS):
                    yield _row(f"wall/{self.seed}/{number}/{place}/{view}", image, sign, region, license)


def shipped(home: Path, source: StreetSigns) -> Path:
    """The folder of the shipped dataset of ``source``, made below ``home`` where it is not there yet."""
    recipe = load_recipes()["direct" if source.closeups else "crop"]
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        intake(workspace, source, 0, source.shard)
        family, oracle = (
            Family(workspace, recipe, source.shard),
            oracle_policy(recipe.family, revision=recipe.digest),
        )
        family.draft(oracle)
        family.run(oracle)
        family.check()
        family.keep()
        family.collect_rejects()
        _, made = SftDataset(workspace, recipe, [source.shard]).publish()
    return made.folder


def _region(sign: Placed) -> Box:
    """What the family crops, in pixels of the wall."""
    return sign.box.grown(max(8, round(MARGIN * max(sign.box.width, sign.box.height))))


def _row(row: str, wall: Image.Image, sign: Placed, region: Box, license: str) -> SourceRow:
    x, y = _corner(region, wall.size, Random(row))
    piece = wall.crop((x, y, x + PIECE[0], y + PIECE[1]))
    named = ", ".join(map(str, _moved(region, x, y)))
    return SourceRow(
        row=row,
        images=(jpeg_bytes(piece),),
        question=f"What colour is the street sign in the region {named}?",
        answer=sign.target.look,
        truth=Truth(boxes=(TruthBox(sign.target.label, *_moved(sign.box, x, y)),)),
        category="attribute",
        license=license,
    )


def _closeup(row: str, wall: Image.Image, sign: Placed, region: Box, license: str) -> SourceRow:
    return SourceRow(
        row=row,
        images=(jpeg_bytes(wall.crop(region)),),
        question="What colour is the street sign?",
        answer=sign.target.look,
        truth=Truth(boxes=(TruthBox(sign.target.label, *_moved(sign.box, region.x1, region.y1)),)),
        category="attribute",
        license=license,
    )


def _corner(region: Box, wall: tuple[int, int], chance: Random) -> tuple[int, int]:
    """Where to cut a piece so that it holds the region, as far from its left and upper edge as ``LEAST``."""
    x = chance.randint(max(0, region.x2 - PIECE[0]), min(region.x1 - LEAST, wall[0] - PIECE[0]))
    y = chance.randint(max(0, region.y2 - PIECE[1]), min(region.y1 - LEAST, wall[1] - PIECE[1]))
    return x, y


def _moved(box: Box, x: int, y: int) -> Box:
    return Box(box.x1 - x, box.y1 - y, box.x2 - x, box.y2 - y)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("home", type=Path, help="the workspace; what is there already is not made again")
    parser.add_argument("--walls", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--closeups", action="store_true", help="the regions themselves, for the colours alone")
    options = parser.parse_args()
    print(shipped(options.home, StreetSigns(options.walls, options.seed, options.closeups)))


if __name__ == "__main__":
    main()
