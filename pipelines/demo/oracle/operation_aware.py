"""The oracle of ``operation_aware``: a zoom by tool call and what it shows, or a few sentences."""

from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    answer_turn,
    before_look,
    family_script,
    label_of,
    place_at,
    visibility,
    why_closer,
)
from darkroom.pipelines.generation.recipes import as_fractions, as_looked_up
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.protocols.tools import crop_line
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import box_from_fractions

_SAYS = data_beside(__file__)


def _zoom_or_answer(turn: CompletionRequest) -> str:
    sample, hint, view = turn.task.sample, turn.task.hint, visibility(turn.task)
    label = label_of(sample, unnamed="thing in question")
    if hint["style"] == "text" or turn.rounds:
        plain = [*_SAYS["as_it_is"], *(_SAYS["plain"] if view.is_plain else ())]
        return answer_turn(turn, ToolCall(), plain if hint["style"] == "text" else _SAYS["shows"], label=label)
    index = int(hint["image"]) - 1
    image, fractions = sample.images[index], [float(side) for side in hint["region"].split(", ")]
    exact = box_from_fractions(fractions, image.width, image.height)
    region = as_looked_up(exact, image, Random(seed_from("region", sample.sample_id)))
    sides: list[int | float] = [*as_fractions(region, image, digits=2)]
    place = place_at((sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2)
    why = why_closer(view)
    thought = before_look(sample, Random(turn.seed), why, _SAYS["then"], label=label, place=place)
    return ToolCall().write_round(thought, crop_line(sides, int(hint["image"])), first=True)


script = family_script(_zoom_or_answer)
