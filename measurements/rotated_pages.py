"""How often ``upright`` measures a page of print right that a draft turned back, by how the draft framed it.

    python -m measurements.rotated_pages page-1.png page-2.png …

Each page (an image file: a rendered PDF page, a scan, a screenshot) is turned by a seeded angle, on its own canvas or
on a larger one, and turned back in six ways; and by half a turn or five degrees too much, which must not pass.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from darkroom.pipelines.generation.recipes.rotation import ANGLES, FILLS, MAX_SIDE
from darkroom.pipelines.verification.checks.rotation import MAX_RESIDUAL
from darkroom.pipelines.vision.registration import degrees_between, pose_of

BICUBIC = Image.Resampling.BICUBIC
Frame = Callable[[Image.Image, int, tuple[int, int]], Image.Image]


def expanded(given: Image.Image, back: int, _: tuple[int, int]) -> Image.Image:
    return given.rotate(back, BICUBIC, expand=True)


def kept(given: Image.Image, back: int, _: tuple[int, int]) -> Image.Image:
    return given.rotate(back, BICUBIC)


def cut(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    whole = expanded(given, back, size)
    left, top = (whole.width - size[0]) // 2, (whole.height - size[1]) // 2
    return whole.crop((left, top, left + size[0], top + size[1]))


def cut_as_given(given: Image.Image, back: int, _: tuple[int, int]) -> Image.Image:
    return cut(given, back, given.size)


def half(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    return expanded(given, back, size).reduce(2)


def padded(given: Image.Image, back: int, size: tuple[int, int]) -> Image.Image:
    whole = given.rotate(back, BICUBIC, expand=True, fillcolor="white")
    canvas = Image.new("RGB", (round(1.5 * max(whole.size)),) * 2, "white")
    canvas.paste(whole, ((canvas.width - whole.width) // 2, (canvas.height - whole.height) // 2))
    return canvas


RIGHT: tuple[Frame, ...] = (expanded, kept, cut, cut_as_given, half, padded)
WRONG = {"half a turn too much": 180, "five degrees too much": 5}


def passes(page: Image.Image, output: Image.Image) -> bool:
    """What the check ``upright`` asks of the angle."""
    pose = pose_of(page, output)
    return pose is not None and abs(degrees_between(pose.angle, 0)) <= MAX_RESIDUAL


def main(paths: list[str]) -> None:
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for path in paths:
        page = Image.open(path).convert("RGB")
        page.thumbnail((MAX_SIDE, MAX_SIDE))
        draw = random.Random(Path(path).name)
        angle, fill, larger = draw.choice(ANGLES), draw.choice(FILLS), draw.random() < 0.5
        given = page.rotate(angle, BICUBIC, expand=larger, fillcolor=fill)
        for frame in RIGHT:
            counts[frame.__name__][passes(page, frame(given, -angle, page.size))] += 1
        for name, degrees in WRONG.items():
            counts[name][passes(page, kept(given, degrees - angle, page.size))] += 1
    for name, passed in counts.items():
        print(f"{name:>22}: {passed[True]} of {passed.total()} pass")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m measurements.rotated_pages IMAGES")
    main(sys.argv[1:])
