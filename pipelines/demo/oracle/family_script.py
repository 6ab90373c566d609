"""What stands in the way of reading an image, by the truth and never by chance, and what the oracle makes of it.

    script = family_script(_crop, _answer, plan=operation_plan)

One script answers all that a family asks of its policy: the plan, the rounds of the trajectory, and the baseline
without tools, which stands in for a model so that necessity is measured without one.
"""

import json
from collections.abc import Sequence
from random import Random

from pipelines.demo import data_beside
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.policies.embedded import Script
from pipelines.models.protocols import Thyme
from pipelines.models.protocols.base import Protocol
from pipelines.models.tasks import spelled_answer
from pipelines.records import Sample
from pipelines.records.answers import split_choice
from pipelines.records.geometry import Box
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.vision.image_transform import Operation

_SAYS = data_beside(__file__)
SMALL_SHARE = 0.01
"""A target below this share of an image with a side over ``LARGE_SIDE`` pixels cannot be made out."""

LARGE_SIDE = 1000
FAINT = 0.5
"""An image with less than this share of its tonal range is faint or dark."""

TILTED_DEGREES = 2.0


def family_script(*rounds: Script, plan: Script | None = None) -> Script:
    """The script of a family: ``rounds`` in their order, the last one from then on."""

    def script(turn: CompletionRequest) -> str:
        if turn.task.stage == "unaided":
            return no_tool_baseline(turn)
        if turn.task.stage == "plan" and plan is not None:
            return plan(turn)
        return rounds[min(len(turn.rounds), len(rounds) - 1)](turn)

    return script


def obstacles(sample: Sample) -> tuple[Operation, ...]:
    """What stands in the way of reading the image, as far as it is known, the most important first.

    Direction and lighting by ``truth.angle`` and ``truth.contrast``, the region by the share of the target's box and
    the image's size. Raises ``RowError`` (not_applicable) for a sample without an image.
    """
    if not sample.images:
        raise RowError(Reason.NOT_APPLICABLE, "the sample has no image")
    truth, image = sample.truth, sample.images[0]
    tilt = abs(((truth.angle or 0) + 180) % 360 - 180)
    small = bool(truth.boxes) and truth.boxes[0].box.area < SMALL_SHARE * image.width * image.height
    needed = {
        Operation.DIRECTION: tilt > TILTED_DEGREES,
        Operation.LIGHTING: truth.contrast is not None and truth.contrast < FAINT,
        Operation.REGION: small and max(image.width, image.height) > LARGE_SIDE,
    }
    return tuple(operation for operation, is_needed in needed.items() if is_needed)


def operation_plan(turn: CompletionRequest) -> str:
    """The decision on the operation, as JSON (``pipelines/generation/operation_planning.py``)."""
    operations = obstacles(turn.task.sample) or (Operation.NONE,)
    operation = Operation.COMBINED if len(operations) > 1 else operations[0]
    issue = " ".join(_SAYS["issues"][obstacle.name.lower()] for obstacle in operations)
    plan = {"issue": issue, "operation": int(operation)}
    return json.dumps(plan if operation is Operation.NONE else plan | {"primary": int(operations[0])})


def no_tool_baseline(turn: CompletionRequest) -> str:
    """The answer if it is visible at first sight, else one of the choices by chance, or none.

    Visible: no obstacle is known and the recipe has not altered the image.
    """
    sample = turn.task.sample
    if sample.images and turn.task.images == sample.images and not obstacles(sample):
        return f"<answer>{sample.answer}</answer>"
    if sample.choices:
        letters = [split_choice(choice)[0] for choice in sample.choices]
        return f"<answer>{Random(turn.seed).choice(letters)}</answer>"
    return "<answer>I cannot tell</answer>"


READABLE_SIDE = 480
"""A crop is enlarged until its longer side has about this many pixels, eight-fold at most."""


def answer_turn(turn: CompletionRequest, protocol: Protocol, phrases: Sequence[str], *, label: str = "") -> str:
    """The final turn: one of ``phrases`` with the slots ``label`` and ``seen``, the choice by name, the answer."""
    sample = turn.task.sample
    phrase = Random(turn.seed).choice(phrases)
    thought = phrase.format(label=label or label_of(sample), seen=spelled_answer(sample))
    return protocol.write_answer(f"{thought}{closing_of(sample)}", sample.answer, first=not turn.rounds)


def one_of_each(rng: Random, *parts: Sequence[str]) -> str:
    """A phrase of each part, in their order."""
    return " ".join(rng.choice(phrases) for phrases in parts)


def label_of(sample: Sample, *, unnamed: str = "detail in question") -> str:
    """The target's name, on one line; not every source has one."""
    label = sample.truth.boxes[0].label if sample.truth.boxes else ""
    return " ".join(label.split()) or unnamed


def closing_of(sample: Sample) -> str:
    """The sentence that names the choice; empty without choices."""
    return f" That is choice {sample.answer}." if sample.choices else ""


def region_from_text(region: str) -> Box:
    """The region of ``180, 100, 280, 170``, as prompts have it."""
    return Box(*map(int, region.split(", ")))


def place_of(region: Box, sample: Sample) -> str:
    """Where in the first image a region is, in words."""
    image = sample.images[0]
    return place_at((region.x1 + region.x2) / 2 / image.width, (region.y1 + region.y2) / 2 / image.height)


def place_at(x: float, y: float) -> str:
    """A point, as fractions 0..1 of the image, in words: ``upper left``, ``centre``, ``right side``."""
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "middle"
    row = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "middle"
    return "centre" if column == row == "middle" else f"{row} {column}" if row != "middle" else f"{column} side"


def enlargement(region: Box, *, readable_side: int = READABLE_SIDE) -> int:
    """How many times a crop is enlarged, 1 to 8."""
    return min(8, max(1, round(readable_side / max(region.width, region.height))))


def crop_turn(turn: CompletionRequest, hint: str, rng: Random, thought: str, *, part: str = "", **slots: str) -> str:
    """A turn that crops the region of the hint named ``hint``: ``thought`` with the slots ``label`` and ``place``.

    The code calls the region ``part``, or by the target's name.
    """
    sample, region = turn.task.sample, region_from_text(turn.task.hint[hint])
    label = label_of(sample)
    words = thought.format(label=label, place=place_of(region, sample), **slots)
    return Thyme().write_round(words, crop_code(region, label=part or label, rng=rng), first=not turn.rounds)


def crop_code(region: Box, *, label: str, rng: Random) -> str:
    """Code that crops and enlarges ``region``, saves the crop and prints its path."""
    code: str = rng.choice(_SAYS["crop_code"])
    return code.format(label=label, box=tuple(region), scale=enlargement(region), **region._asdict())
