"""The oracle of ``operation_aware``: a zoom by tool call and what it shows, or a few sentences."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import answer_turn, family_script, label_of, place_at
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import ToolCall
from pipelines.models.protocols.tools import crop_line


def _zoom_or_answer(turn: CompletionRequest) -> str:
    hint, label = turn.task.hint, label_of(turn.task.sample, unnamed="thing in question")
    if hint["style"] == "text":
        return answer_turn(turn, ToolCall(), _PLAIN, label=label)
    if turn.rounds:
        return answer_turn(turn, ToolCall(), _SHOWS, label=label)
    sides: list[int | float] = [float(side) for side in hint["region"].split(", ")]
    place = place_at((sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2)
    thought = random.Random(turn.seed).choice(_WHY).format(label=label, place=place)
    return ToolCall().write_round(thought, crop_line(sides, int(hint["image"])), first=True)


script = family_script(_zoom_or_answer)


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
