"""Obstacles to reading an image, as they were measured, and the oracle's words about them.

    script = family_script(_crop, _answer, plan=operation_plan)

One script answers all that a family asks of its policy: the plan, the rounds of the trajectory, and the baseline
without tools, which stands in for a model so that necessity is measured without one.
"""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from darkroom.pipelines.demo import data_beside, some_form
from darkroom.pipelines.generation.recipes import as_fractions, as_looked_up
from darkroom.pipelines.models.policies.embedded import Script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.protocols.protocol import Protocol
from darkroom.pipelines.models.tasks import Task, spelled_answer
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.checks.anticipation import names_answer
from darkroom.pipelines.vision.image_transform import Operation
from darkroom.pipelines.vision.visibility import Visibility, shown_side

_SAYS = data_beside(__file__)
READ_AT_FIRST_SIGHT = 0.6
"""How often the student reads what is neither small nor large without a closer look."""

CLEAR_SIDE = 40
"""Pixels of the model from which on the oracle says of a crop that it shows the target clearly."""


def family_script(*rounds: Script, plan: Script | None = None) -> Script:
    """The script of a family: ``rounds`` in their order, the last one from then on."""

    def script(turn: CompletionRequest) -> str:
        if turn.task.stage == "unaided":
            return no_tool_baseline(turn)
        if turn.task.stage == "plan" and plan is not None:
            return plan(turn)
        return rounds[min(len(turn.rounds), len(rounds) - 1)](turn)

    return script


def visibility(task: Task) -> Visibility:
    """The measured visibility of a sample; by its box and its image's size alone where nothing was."""
    if stored := task.hint.get("visibility"):
        return Visibility.from_json(stored)
    sample = task.sample
    if not sample.images or not sample.truth.boxes:
        return Visibility(angle=sample.truth.angle)
    target = sample.truth.boxes[0]
    width, height = sample.images[target.image].width, sample.images[target.image].height
    share = target.box.area / (width * height)
    return Visibility(shown_side(target.box, width, height), share, sample.truth.angle, longest=max(width, height))


def obstacles(task: Task) -> tuple[Operation, ...]:
    """Measured obstacles, most important first. Raises ``RowError`` (not_applicable) for a sample without an image."""
    if not task.sample.images:
        raise RowError(Reason.NOT_APPLICABLE, "the sample has no image")
    view = visibility(task)
    is_needed = {Operation.DIRECTION: view.is_turned, Operation.LIGHTING: view.is_faint}
    is_needed[Operation.REGION] = view.needs_closer_look
    return tuple(operation for operation, needed in is_needed.items() if needed)


def operation_plan(turn: CompletionRequest) -> str:
    """The decision on the operation, as JSON (``pipelines/generation/operation_planning.py``)."""
    operations = obstacles(turn.task) or (Operation.NONE,)
    operation = Operation.COMBINED if len(operations) > 1 else operations[0]
    issue = " ".join(_SAYS["issues"][obstacle.name.lower()] for obstacle in operations)
    plan = {"issue": issue, "operation": int(operation)}
    return json.dumps(plan if operation is Operation.NONE else plan | {"primary": int(operations[0])})


def no_tool_baseline(turn: CompletionRequest) -> str:
    """The answer if it is visible at first sight, else one of the choices by chance, or none. Visible: no obstacle
    measured, no image altered; a target neither small nor large is read ``READ_AT_FIRST_SIGHT`` of the time."""
    sample = turn.task.sample
    if sample.images and turn.task.images == sample.images and not obstacles(turn.task):
        is_sure = visibility(turn.task).size != "between"
        if is_sure or Random(seed_from("first sight", turn.seed)).random() < READ_AT_FIRST_SIGHT:
            return f"<answer>{sample.answer}</answer>"
    if sample.choices:
        return f"<answer>{Random(turn.seed).choice([split_choice(choice)[0] for choice in sample.choices])}</answer>"
    return "<answer>I cannot tell</answer>"


READABLE_SIDE = 480
"""A crop is enlarged until its longer side has about this many pixels, eight-fold at most."""


def answer_turn(
    turn: CompletionRequest, protocol: Protocol, *parts: Sequence[str], label: str = "", rng: Random | None = None
) -> str:
    """The final turn: a phrase of each part with the slots ``label`` and ``seen``, the choice by name, the answer."""
    sample = turn.task.sample
    phrase = one_of_each(rng or Random(turn.seed), *parts)
    thought = phrase.format(label=label or label_of(sample), seen=spelled_answer(sample))
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    return protocol.write_answer(f"{thought}{closing}", sample.answer, first=not turn.rounds)


def answering(protocol: Protocol, phrases: Sequence[str]) -> Script:
    return lambda turn: answer_turn(turn, protocol, phrases)


def answer_from_crop(turn: CompletionRequest, says: Mapping[str, Any]) -> str:
    return answer_turn(turn, Thyme(), after_crop(turn.task.sample, enlargement(hinted_region(turn)), says))


def one_of_each(rng: Random, *parts: Sequence[str]) -> str:
    return " ".join(some_form(phrases, rng) for phrases in parts)


def before_look(sample: Sample, rng: Random, *parts: Sequence[str], **slots: object) -> str:
    """A phrase of each part with its ``slots``, such that they don't name the answer: nothing has shown it yet."""
    for _ in range(_TRIES):
        text = one_of_each(rng, *parts).format(**slots)
        if names_answer(text, sample) is None:
            return text
    return str(_SAYS["neutral"])


def silent(rng: Random, codes: Sequence[str], sample: Sample) -> str:
    """One of the programs, whose comments don't name the answer where there is such a one."""
    return rng.choice([code for code in codes if names_answer(code, sample) is None] or list(codes))


def why_closer(view: Visibility, says: Mapping[str, Any] = _SAYS["why"]) -> Sequence[str]:
    """The reasons for a closer look that hold: ``small``, ``detail`` of a large image, or ``between``."""
    kind = "small" if view.size == "small" else "detail" if view.is_detail else "between"
    return list(says[kind])


def by_scale(name: str, scale: int, says: Mapping[str, Any] = _SAYS) -> Sequence[str]:
    """The phrases, and those that speak of an enlargement where there is one."""
    return [*says[name], *(says[f"{name}_enlarged"] if scale > 1 else ())]


def after_crop(sample: Sample, scale: int, says: Mapping[str, Any] = _SAYS) -> Sequence[str]:
    """Claims that hold of a crop: that it is clear only where the target is large enough in it."""
    target = sample.truth.boxes[0].box
    is_clear = min(target.width, target.height) * scale >= CLEAR_SIDE
    return [*by_scale("shows", scale, says), *(says["shows_clear"] if is_clear else ())]


_TRIES = 12


def label_of(sample: Sample) -> str:
    """The target's name, on one line, or by the category what is shown: not every source has one, and some give the
    answer away."""
    label = " ".join(sample.truth.boxes[0].label.split()) if sample.truth.boxes else ""
    unnamed: dict[str, str] = _SAYS["unnamed"]
    return label if label and names_answer(label, sample) is None else unnamed.get(sample.category, unnamed["other"])


def region_from_text(region: str) -> Box:
    """The region of ``180, 100, 280, 170``, as prompts have it."""
    return Box(*map(int, region.split(", ")))


def first_region(turn: CompletionRequest) -> Box:
    """The region of the hint that the first round crops."""
    return region_from_text(turn.task.hint["first_region"])


def hinted_region(turn: CompletionRequest) -> Box:
    return looked_up(turn, region_from_text(turn.task.hint["region"]))


def looked_up(turn: CompletionRequest, region: Box) -> Box:
    """A region as one knows it who saw the image: the hint has it to the pixel, and an example must not."""
    sample = turn.task.sample
    if is_named(region, sample):
        return region
    return as_looked_up(region, sample.images[0], Random(seed_from("region", sample.sample_id)))


def is_named(region: Box, sample: Sample) -> bool:
    """True if the question itself names the region, as `267, 180, 467, 262`."""
    return ", ".join(map(str, region)) in sample.question


def place_of(region: Box, sample: Sample) -> str:
    image = sample.images[0]
    return place_at((region.x1 + region.x2) / 2 / image.width, (region.y1 + region.y2) / 2 / image.height)


def place_at(x: float, y: float) -> str:
    """A point, as fractions 0..1 of the image, in words: ``upper left``, ``centre``, ``right side``."""
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "middle"
    row = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "middle"
    return "centre" if column == row == "middle" else f"{row} {column}" if row != "middle" else f"{column} side"


def enlargement(region: Box, *, readable_side: int = READABLE_SIDE) -> int:
    """Scale by which a crop is enlarged, 1 to 8."""
    return min(8, max(1, round(readable_side / max(region.width, region.height))))


def crop_turn(
    turn: CompletionRequest, region: Box, rng: Random, *parts: Sequence[str], part: str = "", **slots: str
) -> str:
    """A turn that crops ``region``: a phrase of each part with the slots ``label`` and ``place``. The code calls the
    region ``part``, or by the target's name."""
    sample = turn.task.sample
    label = label_of(sample)
    words = before_look(sample, rng, *parts, label=label, place=place_of(region, sample), **slots)
    return Thyme().write_round(words, crop_code(region, sample, label=part or label, rng=rng), first=not turn.rounds)


def crop_code(region: Box, sample: Sample, *, label: str, rng: Random) -> str:
    """Code that crops ``region``, enlarges it where that is needed, saves the crop and prints its path."""
    scale, image = enlargement(region), sample.images[0]
    codes: list[str] = _SAYS["crop_code" if scale > 1 else "plain_crop_code"]
    if is_named(region, sample):
        codes = [code for code in codes if "{box}" in code]  # the numbers stand in it as the question has them
    code = rng.choice(codes)
    shares = dict(zip(("left", "top", "right", "bottom"), as_fractions(region, image, digits=2), strict=True))
    return code.format(label=label, box=tuple(region), scale=scale, **shares, **region._asdict())
