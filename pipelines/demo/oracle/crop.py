"""The oracle of ``crop``: a crop of the target, for one row in six after too wide a look, then what it shows."""

from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_turn,
    crop_turn,
    enlargement,
    family_script,
    is_named,
    looked_up,
    region_from_text,
    visibility,
    where_to_crop,
    why_closer,
)
from darkroom.pipelines.generation.recipes.further_enhancement import generous
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import RowError

_SAYS = data_beside(__file__)
TOO_WIDE = 1 / 6
"""How often the first look shows far more than the target."""


def _look_or_answer(turn: CompletionRequest) -> str:
    regions = _regions(turn)
    if len(turn.rounds) < len(regions):
        region = regions[len(turn.rounds)]
        # a turn's own seed: the second look does not repeat the first one's words
        rng = Random(turn.seed if turn.rounds else turn.task.seed)
        why = _SAYS["narrower"] if turn.rounds else why_closer(visibility(turn.task))
        return crop_turn(turn, region, rng, why, where_to_crop(enlargement(region)))
    return answer_turn(turn, Thyme(), after_crop(turn.task.sample, enlargement(regions[-1])))


def _regions(turn: CompletionRequest) -> list[Box]:
    """Regions to look at, in order."""
    region, rng = looked_up(turn, region_from_text(turn.task.hint["region"])), Random(turn.task.seed)
    if is_named(region, turn.task.sample) or rng.random() >= TOO_WIDE:
        return [region]
    image = turn.task.sample.images[0]
    try:
        return [generous(region, image.width, image.height, rng), region]
    except RowError:  # no room for a wider look
        return [region]


script = family_script(_look_or_answer)
