"""Street signs on the demo's walls: pieces that name a region, closeups, and looks from afar and from near.

The walls, what hangs on them and where it hangs are the embedded source's (``pipelines/demo/images/scenes.py``). A
question names the region, because a model of a quarter of a million weights cannot search a wall.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from PIL import Image

from pipelines.demo.images import DEMO_VERSION
from pipelines.demo.images.material import TEXTURE_LICENSE, joint_license, jpeg_bytes
from pipelines.demo.images.scenes import TOPICS, Placed, hung
from pipelines.demo.images.walls import lit
from pipelines.generation.recipes import MARGIN
from pipelines.records import Truth, TruthBox
from pipelines.records.digest import digest
from pipelines.records.geometry import Box
from pipelines.sources import SourceRow

PIECE = (480, 360)
VIEWS = 2
LEAST = 100
"""No coordinate is smaller: numbers of three digits are all alike to a reader that counts tokens."""
FAR = (1040, 780)
"""A piece in which a sign is a detail: the family ``operation_aware`` zooms in on it."""
NEARER = 4
"""How many times a sign seen from near is enlarged: then that family answers at once."""
AROUND = 12
"""Pixels of the wall around the region of a sign that is seen from near."""
_NUMBER = r"(0\.\d{3}|\d+)"
_NAMED = re.compile(rf"(?:regions? |and ){_NUMBER}, {_NUMBER}, {_NUMBER}, {_NUMBER}")
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
    closeups: bool = False
    n_shards: int = 1
    views: int = VIEWS
    """Pieces per sign, cut at different places."""

    @property
    def name(self) -> str:
        """Of the source."""
        return "street_sign_closeups" if self.closeups else "street_signs"

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters and of the demo that they are made with."""
        return digest([DEMO_VERSION, self.n_walls, self.seed, self.closeups, PIECE, self.views, LEAST])

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for hung_sign in hung_signs(self.n_walls, self.seed):
            if self.closeups:
                yield _closeup(hung_sign)
                continue
            for view in range(self.views):
                yield _piece(f"{hung_sign.name}/{view}", hung_sign)


@dataclass(frozen=True, slots=True)
class Looks:
    """Every sign once from afar, where its colour is seen in a crop alone, and once from near, where a look shows it.

    A question names the region in thousandths of the image, as the crop tool wants it. The category is ``far`` or
    ``near``; ``drawing_helps`` in the truth's details says whether a look helps.
    """

    n_walls: int
    seed: int
    n_shards: int = 1

    @property
    def name(self) -> str:
        """Of the source."""
        return "street_sign_looks"

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters and of the demo that they are made with."""
        return digest([DEMO_VERSION, self.n_walls, self.seed, FAR, NEARER, LEAST])

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for hung_sign in hung_signs(self.n_walls, self.seed):
            far = _view(hung_sign, FAR, Random(hung_sign.name))
            near = hung_sign.region.grown(AROUND)
            yield _look(f"{hung_sign.name}/far", hung_sign, far, scale=1, is_far=True)
            yield _look(f"{hung_sign.name}/near", hung_sign, near, scale=NEARER, is_far=False)


def hung_signs(n_walls: int, seed: int) -> Iterator[HungSign]:
    """The signs of all walls, but those whose region lies at the very edge."""
    for number in range(_SIGNS, _SIGNS + n_walls * len(TOPICS), len(TOPICS)):
        wall = hung(number, seed)
        image = lit(wall.scene.canvas, wall.rng)
        license = joint_license([TEXTURE_LICENSE, *(photograph.license for photograph in wall.photographs)])
        for place, sign in enumerate(wall.scene.placed["sign"]):
            region = sign.box.grown(max(8, round(MARGIN * max(sign.box.width, sign.box.height))))
            if min(region) >= LEAST and region.fits(*image.size):
                yield HungSign(f"wall/{seed}/{number}/{place}", image, sign, region, license)


def named_region(question: str, size: tuple[int, int] | None = None) -> Box:
    """The first region that a question names, as ``named_regions``."""
    return named_regions(question, size)[0]


def named_regions(question: str, size: tuple[int, int] | None = None) -> list[Box]:
    """The regions that a question names, in pixels of its image; ``size`` is needed where it names shares of it.

    Raises ``ValueError`` for a question without one.
    """
    width, height = size or (1, 1)
    whole = (width, height) * 2
    return [
        Box(*(round(side * pixels if side < 1 else side) for side, pixels in zip(sides, whole, strict=True)))
        for sides in named_sides(question)
    ]


def named_sides(question: str) -> list[list[float]]:
    """The numbers of every region as the question has them. Raises ``ValueError`` for a question without one."""
    regions = _NAMED.findall(question)
    if not regions:
        raise ValueError(f"no region in {question!r}")
    return [[float(number) for number in numbers] for numbers in regions]


def _piece(row: str, hung_sign: HungSign) -> SourceRow:
    part = _view(hung_sign, PIECE, Random(row))
    region = ", ".join(map(str, _moved(hung_sign.region, part)))
    question = f"What colour is the street sign in the region {region}?"
    return _row(row, question, hung_sign, hung_sign.wall.crop(part), _moved(hung_sign.sign.box, part))


def _closeup(hung_sign: HungSign) -> SourceRow:
    part = hung_sign.region
    box = _moved(hung_sign.sign.box, part)
    return _row(hung_sign.name, "What colour is the street sign?", hung_sign, hung_sign.wall.crop(part), box)


def _look(row: str, hung_sign: HungSign, part: Box, *, scale: int, is_far: bool) -> SourceRow:
    image = hung_sign.wall.crop(part).resize((scale * part.width, scale * part.height), Image.Resampling.BICUBIC)
    region, box = (
        Box(*(scale * side for side in _moved(place, part))) for place in (hung_sign.region, hung_sign.sign.box)
    )
    words = ", ".join(_thousandths(side / whole) for side, whole in zip(region, image.size * 2, strict=True))
    question = f"What colour is the street sign in the region {words}?"
    details = json.dumps({"drawing_helps": is_far})
    return _row(row, question, hung_sign, image, box, category="far" if is_far else "near", details=details)


def _row(
    row: str,
    question: str,
    hung_sign: HungSign,
    image: Image.Image,
    box: Box,
    *,
    category: str = "attribute",
    details: str | None = None,
) -> SourceRow:
    target = hung_sign.sign.target
    return SourceRow(
        row=row,
        images=(jpeg_bytes(image),),
        question=question,
        answer=target.look,
        truth=Truth(boxes=(TruthBox(target.label, *box),), details=details),
        category=category,
        license=hung_sign.license,
    )


def _view(hung_sign: HungSign, size: tuple[int, int], chance: Random) -> Box:
    """Where to cut a piece so that it holds the region, as far from its left and upper edge as ``LEAST``."""
    region, wall = hung_sign.region, hung_sign.wall
    x = chance.randint(max(0, region.x2 - size[0]), min(region.x1 - LEAST, wall.width - size[0]))
    y = chance.randint(max(0, region.y2 - size[1]), min(region.y1 - LEAST, wall.height - size[1]))
    return Box(x, y, x + size[0], y + size[1])


def _thousandths(share: float) -> str:
    """``0.451``, never with a 0 at its end: a call in JSON would lose it, and with it a digit to copy."""
    number = round(1000 * share)
    return f"0.{number + (number % 10 == 0):03d}"


def _moved(box: Box, part: Box) -> Box:
    return Box(box.x1 - part.x1, box.y1 - part.y1, box.x2 - part.x1, box.y2 - part.y1)
