"""The oracle of ``figure``: the source's drawing of the problem, then what it shows."""

from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.grammar import some_form
from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import reference_solution

_SAYS = data_beside(__file__)


def _draw_or_answer(turn: CompletionRequest) -> str:
    solution, rng = reference_solution(turn.task.sample), Random(turn.task.seed)
    why, shows = some_form(_SAYS["draw"], rng), some_form(_SAYS["shows"], rng)
    if not solution.drawn:
        raise RowError(Reason.UNSUITABLE, "the source knows no drawing of this problem; only a model can make one")
    if not turn.rounds:
        return ToolCall().write_round(f"{solution.idea} {why}", solution.programs[0], first=True)
    answer = turn.task.sample.answer
    return ToolCall().write_answer(shows.format(seen=solution.seen, answer=answer), answer, first=False)


script = family_script(_draw_or_answer)
