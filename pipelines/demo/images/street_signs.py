"""Street signs on the demo's walls: pieces of them with a question that names a region.

The walls, what hangs on them and where it hangs are the embedded source's (``pipelines/demo/images/scenes.py``). A
question names the region, because a model of a quarter of a million weights cannot search a wall.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from PIL import Image

from darkroom.pipelines.demo.images import DEMO_VERSION
from darkroom.pipelines.demo.images.material import TEXTURE_LICENSE, joint_license, jpeg_bytes
from darkroom.pipelines.demo.images.scenes import TOPICS, Placed, make_wall
from darkroom.pipelines.demo.images.walls import lit
from darkroom.pipelines.generation.recipes import MARGIN
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow

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
    target = hung_sign.sign.target
    return SourceRow(
        row=row,
        images=(jpeg_bytes(image),),
        question=question,
        answer=target.look,
        truth=Truth(boxes=(TruthBox(target.label, *box),)),
        category="attribute",
        license=hung_sign.license,
    )


def view_of(hung_sign: HungSign, size: tuple[int, int], chance: Random) -> Box:
    """Cut a piece so that it holds the region, as far from its left and upper edge as ``LEAST``."""
    region, wall = hung_sign.region, hung_sign.wall
    x = chance.randint(max(0, region.x2 - size[0]), min(region.x1 - LEAST, wall.width - size[0]))
    y = chance.randint(max(0, region.y2 - size[1]), min(region.y1 - LEAST, wall.height - size[1]))
    return Box(x, y, x + size[0], y + size[1])


def moved(box: Box, part: Box) -> Box:
    """A box of a wall in a part of it."""
    return Box(box.x1 - part.x1, box.y1 - part.y1, box.x2 - part.x1, box.y2 - part.y1)
