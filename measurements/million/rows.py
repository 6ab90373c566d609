"""Rows of the real records, made here: samples with an image's reference and trajectories with three of them."""

from collections.abc import Iterator

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.records import Check, ImageRef, Observation, Provenance, Round, Sample, Trajectory, Truth, Usage
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.samples import TruthBox

FAMILY = "crop"
_THOUGHT = "The sign is small, so I cut out the part of the image that it is in and enlarge it before I read it. "
_CODE = "from PIL import Image\nimage = Image.open('input.png')\nprint(image.crop(({0}, 20, 400, 300)).size)\n" * 4


def _images(n: int, what: str, count: int) -> Iterator[ImageRef]:
    for number in range(count):
        yield ImageRef(digest([what, n, number]), 3000, 2000, "RGB", "PNG")


def made_sample(n: int, question: str = "", *, image: int | None = None) -> Sample:
    """Number ``n``, about its own image or number ``image``."""
    about = n if image is None else image
    (shown,) = _images(about, "question", 1)
    question = question or f"What is written on sign {n} at the corner of the street?"
    boxes = (TruthBox("sign", 20, 20, 20 + n % 400 + 9, 60),)
    category = ("text", "colour", "count", "place")[n % 4]
    return Sample(
        digest(["sample", n]), "made", f"row/{n}", "CC0-1.0", (shown,), question, (), f"{about}", Truth(boxes), category
    )


def made_trajectory(n: int, sample: Sample) -> Trajectory:
    """The trajectory of sample ``n``, with two images of its own."""
    names = [check.name for check in load_recipes()[FAMILY].checks]
    checks = tuple(Check(name, True, n % 7 / 7, "as it should be: " + _THOUGHT[:40]) for name in names)
    rounds = tuple(
        Round(_THOUGHT * 2, _CODE.format(n), Observation("ok", f"(380, 280), {n}", (image,)))
        for image in _images(n, "observation", 2)
    )
    made_by = Provenance("model", "m", "r", '{"temperature": 0.7}', digest("prompt"), digest("sandbox"), n, "1.0")
    return Trajectory(
        digest(["trajectory", n]), sample.sample_id, FAMILY, "thyme", sample.images, rounds, _THOUGHT, sample.answer,
        "last_round", checks, Usage(2, 3000, 300, 0.001), made_by,
    )  # fmt: skip
