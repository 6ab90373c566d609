"""The oracle of ``error_correction``: a crop that misses, the right one with the reason, the answer."""

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
from pipelines.records.geometry import Box


def _wrong_crop(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.task.seed)
    region = region_from_text(turn.task.hint["first_region"])
    slots = {"label": label_of(sample), "place": place_of(region, sample)}
    thought = f"{rng.choice(_WHY)} {rng.choice(_BELIEF)}".format(**slots)
    return Thyme().write_round(thought, crop_code(region, label="part in question", rng=rng), first=True)


def _right_crop(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.seed)
    first, region = (region_from_text(turn.task.hint[name]) for name in ("first_region", "region"))
    observed = _observed(turn, first, rng)
    slots = {"label": label_of(sample), "way": _way(first, region), "place": place_of(region, sample)}
    thought = f"{observed} {rng.choice(_INSTEAD)}".format(**slots)
    return Thyme().write_round(thought, crop_code(region, label=label_of(sample), rng=rng), first=False)


def _observed(turn: CompletionRequest, first: Box, rng: random.Random) -> str:
    """What the first round really gave: nothing, another thing of the kind, or none of that kind."""
    if not turn.rounds[0].observation.images:
        return "That gave no picture at all."
    distractors = (truth.box for truth in turn.task.sample.truth.boxes[1:])
    return rng.choice(_ANOTHER if any(first.intersection(box).area for box in distractors) else _MISSED)


def _way(first: Box, region: Box) -> str:
    """The direction from the middle of the first region to the right one."""
    across, down = (region.x1 + region.x2 - first.x1 - first.x2) / 2, (region.y1 + region.y2 - first.y1 - first.y2) / 2
    column = ("left" if across < 0 else "right") if abs(across) > abs(down) / 2 else ""
    row = ("up" if down < 0 else "down") if abs(down) > abs(across) / 2 else ""
    return f"further {row} and to the {column}" if row and column else f"further {row or f'to the {column}'}"


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, Thyme(), _SHOWS)


script = family_script(_wrong_crop, _right_crop, _answer)


_WHY = (
    "The question is about the {label}, which is far too small to be read in the full picture.",
    "I need a closer look at the {label}; at this size it is only a speck.",
    "The {label} is one small detail among many here.",
)
_BELIEF = (
    "I take it to be near the {place}, so I crop there and enlarge the crop.",
    "My impression is that it is somewhere at the {place}. I will zoom in on that.",
    "It seems to be around the {place}; let me look at that part first.",
)
_MISSED = (
    "This crop does not show the {label}: I looked at the wrong spot.",
    "The {label} is not in this view, so my first guess of its place was off.",
    "What came back is another part of the picture; the {label} is nowhere in it.",
)
_ANOTHER = (
    "This is not the {label} that the question is about, only another thing of its kind.",
    "What came back shows something similar, but it belongs to another part of the picture.",
)
_INSTEAD = (
    "Compared with the whole picture it has to lie {way}, near the {place}. I move the region there.",
    "Looking at the picture again, the {label} I want is {way}. I correct the crop accordingly.",
    "The region has to move: the right place is {way}, at the {place}.",
)
_SHOWS = (
    "The corrected crop shows the {label}: {seen}.",
    "Now the {label} is in view, and it can be read: {seen}.",
    "This is the right spot. The {label} is clear now: {seen}.",
)
