"""Operation-aware: half of the rows zoom in with a tool call, half answer in words (Look Less, Reason More, §4.1).

What the question is about decides: it is zoomed in on when it is smaller than ``MIN_VISIBLE_SIDE`` in the picture as
the model sees it, and else it can be seen as it is. The system prompt that a trained model reads is drawn by seed:
forced or free where the row calls, forbidden or free where it does not (appendix B, prompts 2 to 4).
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Literal

from pipelines.answers import split_choice
from pipelines.checks import (
    answer_matches,
    calls_are_valid,
    hint_stays_hidden,
    mode_is_obeyed,
    no_round_is_broken,
    zooms_on_target,
)
from pipelines.digest import seed_from
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import ToolCall
from pipelines.protocols.tools import crop_line
from pipelines.recipes.base import Recipe
from pipelines.records import ImageRef, Sample, TruthBox
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared
from pipelines.visual_tokens import QWEN2_5_VL, resized

Style = Literal["tool", "text"]
MODES: dict[Style, tuple[str, ...]] = {"tool": ("forced", "free"), "text": ("forbidden", "free")}
MIN_VISIBLE_SIDE = QWEN2_5_VL.side
"""Pixels: what is smaller than the square that one visual token stands for is not seen reliably."""
MARGIN = 0.15
"""How far the crop reaches beyond the target, as a share of the target's longer side."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The images as they are; how the row is to be written, and where it zooms in."""
    if not sample.images or sample.videos:
        raise RowFault(Reason.NOT_APPLICABLE, "the question is not about images alone")
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    style: Style = "tool" if target and _is_small(target, sample.images[target.image]) else "text"
    mode = random.Random(seed_from("operation_aware/mode", sample.sample_id)).choice(MODES[style])
    hint = {"style": style, "image": "", "region": ""}
    if target and style == "tool":
        sides = _fractions(target.box, sample.images[target.image])
        hint |= {"image": str(target.image + 1), "region": ", ".join(map(str, sides))}
    return Prepared(sample.images, hint, mode)


def script(turn: Turn) -> str:
    """The oracle: a call and what it shows, or a few sentences."""
    draw = random.Random(turn.seed)
    if turn.task.hint["style"] == "text":
        return _in_words(turn.task.sample, draw)
    return _answer(turn.task.sample, draw) if turn.rounds else _look(turn, draw)


def _look(turn: Turn, draw: random.Random) -> str:
    hint = turn.task.hint
    sides: list[int | float] = [float(side) for side in hint["region"].split(", ")]
    thought = draw.choice(_WHY).format(label=_label(turn.task.sample), place=_place(sides))
    return ToolCall().write_round(thought, crop_line(sides, int(hint["image"])), first=True)


def _answer(sample: Sample, draw: random.Random) -> str:
    thought = draw.choice(_SHOWS).format(label=_label(sample), seen=_seen(sample))
    return ToolCall().write_answer(f"{thought}{_closing(sample)}", sample.answer, first=False)


def _in_words(sample: Sample, draw: random.Random) -> str:
    thought = draw.choice(_PLAIN).format(label=_label(sample), seen=_seen(sample))
    return ToolCall().write_answer(f"{thought}{_closing(sample)}", sample.answer, first=True)


def _is_small(target: TruthBox, image: ImageRef) -> bool:
    wide, high = resized(image.width, image.height, QWEN2_5_VL)
    return min(target.box.width * wide / image.width, target.box.height * high / image.height) < MIN_VISIBLE_SIDE


def _fractions(target: Box, image: ImageRef) -> tuple[float, float, float, float]:
    """The target with its surroundings, as fractions of the image: thousandths, rounded outwards."""
    region = target.grown(max(8, round(MARGIN * max(target.width, target.height)))).clipped(image.width, image.height)
    return (
        math.floor(1000 * region.x1 / image.width) / 1000,
        math.floor(1000 * region.y1 / image.height) / 1000,
        math.ceil(1000 * region.x2 / image.width) / 1000,
        math.ceil(1000 * region.y2 / image.height) / 1000,
    )


def _place(sides: list[int | float]) -> str:
    x, y = (sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "middle"
    row = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "middle"
    return "centre" if column == row == "middle" else f"{row} {column}" if row != "middle" else f"{column} side"


def _seen(sample: Sample) -> str:
    return dict(map(split_choice, sample.choices))[sample.answer] if sample.choices else sample.answer


def _closing(sample: Sample) -> str:
    return f" That is choice {sample.answer}." if sample.choices else ""


def _label(sample: Sample) -> str:
    """What the target is called, on one line."""
    label = sample.truth.boxes[0].label if sample.truth.boxes else ""
    return " ".join(label.split()) or "thing in question"


_WHY = (
    "The {label} that the question asks about is tiny in this picture, so I cannot read it as it is. It is near the "
    "{place}; I zoom in there.",
    "To answer I have to make out the {label}, and at this size that is not possible. I take a closer look at the "
    "{place} of the picture.",
    "In the {place} of the picture is the {label}, too small to judge with confidence. A closer look will help.",
)
_SHOWS = (
    "Up close the {label} can be made out: {seen}.",
    "The cut-out shows the {label} well enough to read it: {seen}.",
    "Now I can see what the {label} shows. It is {seen}.",
)
_PLAIN = (
    "The {label} is large enough to be seen as it is. Looking at it and at what surrounds it, I find: {seen}.",
    "This needs no closer look, because the {label} is plain to see in the whole picture. What I see there is {seen}.",
    "I go through the picture as it is. The {label} stands out clearly, and the question comes down to this: {seen}.",
)

recipe = Recipe(
    family="operation_aware",
    description="Operation-aware: a zoom by tool call where it is needed, words where not (Look Less, Reason "
    "More, §4.1).",
    file=Path(__file__),
    prompt=bundled_prompt("operation_aware"),
    protocol=ToolCall(),
    prepare=prepare,
    script=script,
    checks=(calls_are_valid, mode_is_obeyed, no_round_is_broken, zooms_on_target, answer_matches, hint_stays_hidden),
    loss_policy="all_rounds",
)
