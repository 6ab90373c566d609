"""The oracle of ``error_correction``: a crop that misses, the right one with the reason, the answer."""

from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_turn,
    crop_turn,
    enlargement,
    family_script,
    looked_up,
    region_from_text,
    visibility,
    why_closer,
)
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records.geometry import Box

_SAYS = data_beside(__file__)


def _wrong_crop(turn: CompletionRequest) -> str:
    why = why_closer(visibility(turn.task))
    region = region_from_text(turn.task.hint["first_region"])
    return crop_turn(turn, region, Random(turn.task.seed), why, _SAYS["belief"], part="part in question")


def _right_crop(turn: CompletionRequest) -> str:
    rng = Random(turn.seed)
    first = region_from_text(turn.task.hint["first_region"])
    region = looked_up(turn, region_from_text(turn.task.hint["region"]))
    return crop_turn(turn, region, rng, _observed(turn, first), _SAYS["instead"], way=_way(first, region))


def _observed(turn: CompletionRequest, first: Box) -> Sequence[str]:
    """The outcome of the first round: nothing, another thing of the kind, or none of that kind."""
    if not turn.rounds[0].observation.images:
        return ["That gave no picture at all."]
    distractors = (truth.box for truth in turn.task.sample.truth.boxes[1:])
    is_another = any(first.intersection(box).area for box in distractors)
    return list(_SAYS["another" if is_another else "missed"])


def _way(first: Box, region: Box) -> str:
    """The direction from the middle of the first region to the right one."""
    across, down = (region.x1 + region.x2 - first.x1 - first.x2) / 2, (region.y1 + region.y2 - first.y1 - first.y2) / 2
    column = ("left" if across < 0 else "right") if abs(across) > abs(down) / 2 else ""
    row = ("up" if down < 0 else "down") if abs(down) > abs(across) / 2 else ""
    return f"further {row} and to the {column}" if row and column else f"further {row or f'to the {column}'}"


def _answer(turn: CompletionRequest) -> str:
    scale = enlargement(looked_up(turn, region_from_text(turn.task.hint["region"])))
    return answer_turn(turn, Thyme(), after_crop(turn.task.sample, scale, _SAYS))


script = family_script(_wrong_crop, _right_crop, _answer)
