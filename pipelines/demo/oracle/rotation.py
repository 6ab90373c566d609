"""The oracle of ``rotation``: code that turns the image upright, then what it shows."""

from functools import partial
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.grammar import some_form
from darkroom.pipelines.demo.oracle.family_script import answer_turn, before_look, family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme

_SAYS = data_beside(__file__)


def _turn_upright(turn: CompletionRequest) -> str:
    rng = Random(turn.task.seed)
    angle, correction = int(turn.task.hint["angle"]), int(turn.task.hint["correction"])
    lean = some_form(_SAYS["leans"][_lean(angle)], rng)
    thought = before_look(turn.task.sample, rng, _SAYS["seen"], _SAYS["why"], _SAYS["then"], lean=lean)
    signed = correction if correction <= 180 else correction - 360
    code = rng.choice(_SAYS["code"]).format(correction=rng.choice((correction, signed)))
    return Thyme().write_round(thought, code, first=True)


def _lean(angle: int) -> str:
    side = "left" if angle < 180 else "right"
    degrees = min(angle, 360 - angle)
    if degrees > 165:
        return "over"
    return f"{side} a little" if degrees < 65 else f"{side} on its side" if degrees <= 115 else f"{side} over"


script = family_script(_turn_upright, partial(answer_turn, protocol=Thyme(), phrases=_SAYS["shows"]))
