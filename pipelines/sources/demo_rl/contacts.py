"""Contact sheets of packaged photographs: in which place one of them is, and where, as a box."""

from __future__ import annotations

from random import Random

from PIL import Image, ImageOps

from pipelines.geometry import Box
from pipelines.sources.demo.choices import Choices, lettered
from pipelines.sources.demo.material import PHOTOGRAPHS, joint_license, photograph_image
from pipelines.sources.demo_rl.sheet import INK, PAPER, Asked

_NAMES = ("astronaut", "cat", "coffee", "coins", "rocket", "pagoda", "flower", "motorcycle", "camera", "horse")
_PLACES = ("upper left", "upper right", "lower left", "lower right")


def place_of_a_photograph(rng: Random, n: int) -> Asked:
    """In which of four places a photograph is."""
    picture, names, boxes, licence = _drawn(rng, 2, n)
    at = names.index(_NAMES[n % len(_NAMES)])
    choices = lettered(_PLACES[at], [place for place in _PLACES if place != _PLACES[at]], place=n, rng=rng)
    phrase = PHOTOGRAPHS[names[at]].phrase
    others = PHOTOGRAPHS[names[(at + 1) % 4]].phrase
    question = f"Where on this sheet is the picture of {phrase}, if one of {others} is beside it?"
    return Asked(picture, question, choices, "location", (phrase, boxes[at]), licence)


def box_of_a_photograph(rng: Random, n: int) -> Asked:
    """Where a photograph is, as a box."""
    picture, names, boxes, licence = _drawn(rng, 2 + n % 2, n)
    at = names.index(_NAMES[n % len(_NAMES)])
    phrase = PHOTOGRAPHS[names[at]].phrase
    question = f"Give the bounding box of the photograph of {phrase} on this sheet, as [x1, y1, x2, y2] in pixels."
    return Asked(picture, question, Choices((), str(list(boxes[at]))), "location", (phrase, boxes[at]), licence)


def _drawn(rng: Random, columns: int, n: int) -> tuple[Image.Image, list[str], list[Box], str]:
    """Two rows of photographs, the ``n``-th among them, on a light or a dark ground; their names and boxes."""
    size = (480, 400)
    picture = Image.new("RGB", size, INK if n % 2 else PAPER)
    wanted = _NAMES[n % len(_NAMES)]
    names = [wanted, *rng.sample([name for name in _NAMES if name != wanted], 2 * columns - 1)]
    rng.shuffle(names)
    wide, high, boxes = size[0] // columns, size[1] // 2, []
    for place, name in enumerate(names):
        width, height = rng.randint(wide * 5 // 8, wide - 8), rng.randint(high * 5 // 8, high - 8)
        x = place % columns * wide + rng.randint(4, wide - width - 4)
        y = place // columns * high + rng.randint(4, high - height - 4)
        picture.paste(ImageOps.fit(photograph_image(name), (width, height), Image.Resampling.BILINEAR), (x, y))
        boxes.append(Box(x, y, x + width, y + height))
    return picture, names, boxes, joint_license(PHOTOGRAPHS[name].license for name in names)
