"""Crop: look closer at the part of the image that the question is about (Thyme appendix B, Coding Data 1; table 10).

The policy is told the target's box, writes why a closer look is needed and a program that crops and enlarges, sees
the crop, and answers. The box may show in the program only. Samples without a box are not applicable; a target that
fills more than ``closeups.MAX_TARGET_SHARE`` of the image is unsuitable, because cropping it would be lazy.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.checks import (
    Necessity,
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    hint_stays_hidden,
    shows_an_image,
)
from pipelines.closeups import as_text, closeup, closing_of, crop_program, from_text, label_of, place_of, seen_in
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.tasks import Prepared


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image as it is; the region to crop as the hint."""
    return Prepared(sample.images, {"region": as_text(closeup(sample))})


def script(turn: Turn) -> str:
    """The oracle: the crop, then what it shows."""
    return _look(turn) if not turn.rounds else _answer(turn)


def _look(turn: Turn) -> str:
    sample = turn.task.sample
    draw = random.Random(turn.task.seed)
    label, region = label_of(sample), from_text(turn.task.hint["region"])
    place = place_of(region, sample)
    why = draw.choice(_WHY).format(label=label, place=place)
    then = draw.choice(_THEN).format(label=label, place=place)
    return Thyme().write_round(f"{why} {then}", crop_program(region, label=label, draw=draw), first=True)


def _answer(turn: Turn) -> str:
    sample = turn.task.sample
    draw = random.Random(turn.seed)
    shows = draw.choice(_SHOWS).format(label=label_of(sample), seen=seen_in(sample))
    return Thyme().write_answer(f"{shows}{closing_of(sample)}", sample.answer, first=False)


_WHY = (
    "The question is about the {label}, which takes up only a sliver of this large picture, so I cannot make it out "
    "reliably at this size.",
    "At this resolution the {label} is a small detail among many others, too small to judge with confidence.",
    "I can see where the {label} must be, but in the full view it is far too small to read.",
    "There is a lot going on in this picture, and the {label} that matters here is tiny.",
)
_THEN = (
    "It sits towards the {place} of the picture. I will crop that part and enlarge it.",
    "It should be near the {place}, so I will cut out that area and look at it enlarged.",
    "Zooming in on the {place}, where the {label} is, should settle it.",
)
_SHOWS = (
    "The enlarged view shows the {label} clearly: {seen}.",
    "Now the {label} can be seen properly, and it is {seen}.",
    "With the {label} enlarged there is no doubt left: {seen}.",
)

recipe = Recipe(
    family="crop",
    description="Cropping: the target is small, the policy crops it, looks and answers (Thyme App. B, table 10).",
    file=Path(__file__),
    prompt=bundled_prompt("crop"),
    protocol=Thyme(),
    n_wanted=28_000,
    necessity=Necessity(max_without_tools=None),
    prepare=prepare,
    script=script,
    checks=(executes, shows_an_image, crop_contains_target, crop_is_tight, answer_matches, hint_stays_hidden),
)
