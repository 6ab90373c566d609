"""The oracle of ``further_enhancement``: a generous crop, the exact one, the answer."""

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


def _generous_crop(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.task.seed)
    region = region_from_text(turn.task.hint["first_region"])
    slots = {"label": label_of(sample), "place": place_of(region, sample)}
    thought = f"{rng.choice(_WHY)} {rng.choice(_WIDE)}".format(**slots)
    return Thyme().write_round(thought, crop_code(region, label=label_of(sample), rng=rng), first=True)


def _exact_crop(turn: CompletionRequest) -> str:
    label, rng = label_of(turn.task.sample), random.Random(turn.seed)
    region = region_from_text(turn.task.hint["region"])
    thought = f"{_observed(turn, rng)} {rng.choice(_CLOSER)}".format(label=label)
    return Thyme().write_round(thought, crop_code(region, label=label, rng=rng), first=False)


def _observed(turn: CompletionRequest, rng: random.Random) -> str:
    """What the first round really gave: nothing, or a crop in which the target is where it is."""
    if not turn.rounds[0].observation.images:
        return "That gave no picture at all, so I still have not seen the {label}."
    first, target = region_from_text(turn.task.hint["first_region"]), turn.task.sample.truth.boxes[0].box
    middle = (target.x1 + target.x2) / 2
    third = min(2, max(0, int(3 * (middle - first.x1) / first.width)))
    where = ("on the left", "near the middle", "on the right")[third]
    parts = round(first.width / target.width)
    size = "less than half" if parts <= 2 else f"about one {_PARTS[min(parts, len(_PARTS) + 2) - 3]}"
    return f"{rng.choice(_FOUND)} {where} of this view, but it takes up only {size} of its width."


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, Thyme(), _SHOWS)


script = family_script(_generous_crop, _exact_crop, _answer)


_WHY = (
    "The {label} that the question is about is a small detail of this large picture.",
    "I cannot make out the {label} in the full view, it is too small.",
    "To answer this I have to see the {label}, which is tiny at this size.",
)
_WIDE = (
    "It should be somewhere around the {place}; I begin with a wide crop there, to be sure not to cut it.",
    "I will first take a roomy part near the {place} and see where exactly it is.",
    "A generous crop around the {place} should contain it.",
)
_FOUND = ("The crop does hold the {label}: it is", "The right area. The {label} can be seen", "I find the {label}")
_CLOSER = (
    "There is too much around it to read it reliably, so I crop the original again, close around it, and enlarge that.",
    "That is still too small for a safe answer. I narrow the region down to the {label} alone.",
    "A tighter crop will leave out what does not matter and show the {label} larger.",
)
_PARTS = ("third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SHOWS = (
    "The tighter crop shows the {label} large enough to read: {seen}.",
    "Now only the {label} is left in view, and it is clear: {seen}.",
    "This time the {label} can be made out without doubt: {seen}.",
)
