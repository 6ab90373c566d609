"""The oracle of ``further_enhancement``: a generous crop, the exact one, the answer."""

from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_turn,
    by_scale,
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

_SAYS = data_beside(__file__)
_PARTS = ("third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _generous_crop(turn: CompletionRequest) -> str:
    region = region_from_text(turn.task.hint["first_region"])
    why = why_closer(visibility(turn.task))
    return crop_turn(turn, region, Random(turn.task.seed), why, _SAYS["wide"])


def _exact_crop(turn: CompletionRequest) -> str:
    region = looked_up(turn, region_from_text(turn.task.hint["region"]))
    closer = by_scale(_SAYS, "closer", enlargement(region))
    return crop_turn(turn, region, Random(turn.seed), _observed(turn), closer)


def _observed(turn: CompletionRequest) -> Sequence[str]:
    """The outcome of the first round: nothing, or a crop in which the target is where it is."""
    if not turn.rounds[0].observation.images:
        return ["That gave no picture at all, so I still have not seen the {label}."]
    first, target = region_from_text(turn.task.hint["first_region"]), turn.task.sample.truth.boxes[0].box
    middle = (target.x1 + target.x2) / 2
    third = min(2, max(0, int(3 * (middle - first.x1) / first.width)))
    where = ("on the left", "near the middle", "on the right")[third]
    parts = round(first.width / target.width)
    size = "less than half" if parts <= 2 else f"about one {_PARTS[min(parts, len(_PARTS) + 2) - 3]}"
    places = [place.replace("{where}", where).replace("{size}", size) for place in _SAYS["place"]]
    return [f"{opening} {place}" for opening in _SAYS["found"] for place in places]


def _answer(turn: CompletionRequest) -> str:
    scale = enlargement(looked_up(turn, region_from_text(turn.task.hint["region"])))
    return answer_turn(turn, Thyme(), after_crop(turn.task.sample, scale, _SAYS))


script = family_script(_generous_crop, _exact_crop, _answer)
