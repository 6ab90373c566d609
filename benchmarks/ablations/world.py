"""The world of the experiments: pieces of the demo's walls, each with one question about the colour of a street sign.

The walls, what hangs on them and where it hangs are the embedded source's (``pipelines/demo/images/scenes.py``). A
question names the region, in pixels of the piece, because a model of a quarter of a million weights cannot search a
wall. What is left to learn: copy four numbers into code, run it, and tell one of five colours from what it shows.

``closeups`` are rows that teach the colours alone, as every model knows them that one would start from: the region is
the image, and nothing has to be looked up in it. ``second_looks`` look at a wrong place first, and then at the right
one.

Rows go the way of all rows: intake, a family (prepared, drafted, executed, checked, kept), ``publish``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

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
_NAMED = re.compile(r"region (\d+), (\d+), (\d+), (\d+)\?")
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


class Rows(NamedTuple):
    """A dataset of the world: the walls, and the family that writes its rows."""

    n_walls: int
    seed: int
    family: str


ROWS: Mapping[str, Rows] = {
    "train": Rows(50, 1000, "crop"),
    "closeups": Rows(50, 1000, "direct"),
    "second_looks": Rows(50, 1000, "error_correction"),
    "held_out": Rows(16, 6000, "crop"),
}
"""By the name of the folder. Held-out rows are of other walls."""


def rows_below(root: Path, name: str) -> Path:
    """Where ``ship`` puts the dataset ``name``."""
    return root / name / "datasets/sft" / ROWS[name].family


def ship(root: Path, name: str) -> Path:
    """The folder of the dataset ``name`` of ``ROWS``, made where it is not there yet."""
    n_walls, seed, family = ROWS[name]
    source = StreetSigns(n_walls, seed, closeups=family == "direct")
    return shipped(root / name, source, family)


def shipped(home: Path, source: StreetSigns, family: str) -> Path:
    """The rows of ``family`` on ``source``, as a dataset below ``home``."""
    recipe = load_recipes()[family]
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        intake(workspace, source, 0, source.shard)
        rows, oracle = (
            Family(workspace, recipe, source.shard),
            oracle_policy(recipe.family, revision=recipe.digest),
        )
        rows.draft(oracle)
        rows.run(oracle)
        rows.check()
        rows.keep()
        rows.collect_rejects()
        _, made = SftDataset(workspace, recipe, [source.shard]).publish()
    return made.folder


def named_region(question: str) -> Box:
    """The region that a question names, in pixels of its image. Raises ``ValueError`` for a question without one."""
    found = _NAMED.search(question)
    if found is None:
        raise ValueError(f"no region in {question!r}")
    return Box(*map(int, found.groups()))


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
