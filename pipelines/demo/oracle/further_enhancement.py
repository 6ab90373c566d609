"""The oracle of ``further_enhancement``: a generous crop, the exact one, the answer."""

from functools import partial
from random import Random

from pipelines.demo import data_beside
from pipelines.demo.oracle.family_script import answer_turn, crop_turn, family_script, one_of_each, region_from_text
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme

_SAYS = data_beside(__file__)
_PARTS = ("third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _generous_crop(turn: CompletionRequest) -> str:
    rng = Random(turn.task.seed)
    return crop_turn(turn, "first_region", rng, one_of_each(rng, _SAYS["why"], _SAYS["wide"]))


def _exact_crop(turn: CompletionRequest) -> str:
    rng = Random(turn.seed)
    return crop_turn(turn, "region", rng, f"{_observed(turn, rng)} {rng.choice(_SAYS['closer'])}")


def _observed(turn: CompletionRequest, rng: Random) -> str:
    """What the first round really gave: nothing, or a crop in which the target is where it is."""
    if not turn.rounds[0].observation.images:
        return "That gave no picture at all, so I still have not seen the {label}."
    first, target = region_from_text(turn.task.hint["first_region"]), turn.task.sample.truth.boxes[0].box
    middle = (target.x1 + target.x2) / 2
    third = min(2, max(0, int(3 * (middle - first.x1) / first.width)))
    where = ("on the left", "near the middle", "on the right")[third]
    parts = round(first.width / target.width)
    size = "less than half" if parts <= 2 else f"about one {_PARTS[min(parts, len(_PARTS) + 2) - 3]}"
    return f"{rng.choice(_SAYS['found'])} {where} of this view, but it takes up only {size} of its width."


script = family_script(_generous_crop, _exact_crop, partial(answer_turn, protocol=Thyme(), phrases=_SAYS["shows"]))
