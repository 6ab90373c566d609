"""The oracle of ``contrast``: code that restores the contrast, then what can be read."""

from functools import partial
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import answer_turn, before_look, family_script, silent
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme

_SAYS = data_beside(__file__)


def _restore(turn: CompletionRequest) -> str:
    rng, degradation = Random(turn.task.seed), str(turn.task.hint["fault"])
    grainy = degradation.endswith("grainy")
    appearance = _SAYS["seen"][degradation.split()[0]]
    sample = turn.task.sample
    thought = before_look(sample, rng, appearance, *([_SAYS["grain"]] if grainy else ()), _SAYS["why"], _SAYS["then"])
    code = silent(rng, _SAYS["code"]["grainy" if grainy else "smooth"], sample)
    return Thyme().write_round(thought, code, first=True)


script = family_script(_restore, partial(answer_turn, protocol=Thyme(), phrases=_SAYS["shows"]))
