"""The oracle of ``operation_aware``: a zoom by tool call and what it shows, or a few sentences."""

from random import Random

from pipelines.demo import data_beside
from pipelines.demo.oracle.family_script import answer_turn, family_script, label_of, place_at
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import ToolCall
from pipelines.models.protocols.tools import crop_line

_SAYS = data_beside(__file__)


def _zoom_or_answer(turn: CompletionRequest) -> str:
    hint, label = turn.task.hint, label_of(turn.task.sample, unnamed="thing in question")
    if hint["style"] == "text" or turn.rounds:
        return answer_turn(turn, ToolCall(), _SAYS["plain" if hint["style"] == "text" else "shows"], label=label)
    sides: list[int | float] = [float(side) for side in hint["region"].split(", ")]
    place = place_at((sides[0] + sides[2]) / 2, (sides[1] + sides[3]) / 2)
    thought = Random(turn.seed).choice(_SAYS["why"]).format(label=label, place=place)
    return ToolCall().write_round(thought, crop_line(sides, int(hint["image"])), first=True)


script = family_script(_zoom_or_answer)
