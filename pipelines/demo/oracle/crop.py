"""The oracle of ``crop``: a crop of the target, then what it shows."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import (
    answer_turn,
    crop_code,
    family_script,
    label_of,
    place_of,
    region_from_text,
)
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme


def _look(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.task.seed)
    region = region_from_text(turn.task.hint["region"])
    slots = {"label": label_of(sample), "place": place_of(region, sample)}
    thought = f"{rng.choice(_WHY)} {rng.choice(_THEN)}".format(**slots)
    return Thyme().write_round(thought, crop_code(region, label=slots["label"], rng=rng), first=True)


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, Thyme(), _SHOWS)


script = family_script(_look, _answer)


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
