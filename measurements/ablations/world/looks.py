"""Signs from close up, where nothing has to be cropped, and from afar and from near, where a look helps or does not."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from PIL import Image

from darkroom.pipelines.demo.street_sign_datasets import LEAST, HungSign, hung_signs, moved, sign_row, view_of
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow
from measurements.ablations.world.made_source import MadeSource

FAR = (1040, 780)
"""A piece in which a sign is a detail: the family ``operation_aware`` zooms in on it."""
NEARER = 4
"""The factor by which a sign seen from near is enlarged: then that family answers at once."""
AROUND = 12
"""Pixels of the wall around the region of a sign that is seen from near."""
_NUMBER = r"(0\.\d{3}|\d+)"
_NAMED = re.compile(rf"(?:regions? |and ){_NUMBER}, {_NUMBER}, {_NUMBER}, {_NUMBER}")


class Closeups(MadeSource):
    """The region of every sign as an image of its own."""

    name = "street_sign_closeups"
    constants = (LEAST,)

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for one in hung_signs(self.n, self.seed):
            box = moved(one.sign.box, one.region)
            yield sign_row(one.name, "What colour is the street sign?", one, one.wall.crop(one.region), box)


class Looks(MadeSource):
    """Every sign once from afar, where its colour is seen in a crop alone, and once from near, where a look shows it.

    A question names the region in thousandths of the image, as the crop tool wants it. The category is ``far`` or
    ``near``; ``drawing_helps`` in the truth's details says whether a look helps.
    """

    name = "street_sign_looks"
    constants = (FAR, NEARER, LEAST)

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for hung_sign in hung_signs(self.n, self.seed):
            far = view_of(hung_sign, FAR, Random(hung_sign.name))
            near = hung_sign.region.grown(AROUND)
            yield _look(f"{hung_sign.name}/far", hung_sign, far, scale=1, is_far=True)
            yield _look(f"{hung_sign.name}/near", hung_sign, near, scale=NEARER, is_far=False)


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


def _look(row: str, hung_sign: HungSign, part: Box, *, scale: int, is_far: bool) -> SourceRow:
    image = hung_sign.wall.crop(part).resize((scale * part.width, scale * part.height), Image.Resampling.BICUBIC)
    region, box = (
        Box(*(scale * side for side in moved(place, part))) for place in (hung_sign.region, hung_sign.sign.box)
    )
    words = ", ".join(_thousandths(side / whole) for side, whole in zip(region, image.size * 2, strict=True))
    asked = sign_row(row, f"What colour is the street sign in the region {words}?", hung_sign, image, box)
    truth = Truth(asked.truth.boxes, details=json.dumps({"drawing_helps": is_far}))
    return replace(asked, truth=truth, category="far" if is_far else "near")


def _thousandths(share: float) -> str:
    """``0.451``, never with a 0 at its end: a call in JSON would lose it, and with it a digit to copy."""
    number = round(1000 * share)
    return f"0.{number + (number % 10 == 0):03d}"
