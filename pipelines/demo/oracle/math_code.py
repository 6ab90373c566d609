"""The oracle of ``math_code``: the long solution, then code that computes it, and the answer."""

from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.grammar import some_form
from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.protocols.markup import write_box
from darkroom.pipelines.records.samples import reference_solution

_SAYS = data_beside(__file__)


def _solution(turn: CompletionRequest) -> str:
    """The idea, every step, the answer in its box."""
    solution = reference_solution(turn.task.sample)
    answer = turn.task.sample.answer.strip("$")
    return "\n\n".join([solution.idea, *solution.steps, f"The final answer is {write_box(answer)}."])


def _compute_or_answer(turn: CompletionRequest) -> str:
    """A computation, for every other problem a second one that checks it, then the answer."""
    solution, rng, n = reference_solution(turn.task.sample), Random(turn.task.seed), len(turn.rounds)
    codes, answer = solution.programs[: rng.choice((1, 2))], turn.task.sample.answer
    if n >= len(codes):
        thought = some_form(_SAYS["conclude"], rng).format(seen=solution.seen, answer=answer)
        return Thyme().write_answer(thought, answer, first=not n)
    if n:
        return Thyme().write_round(some_form(_SAYS["verify"], rng).format(seen=solution.seen), codes[n], first=False)
    return Thyme().write_round(f"{solution.idea} {some_form(_SAYS['compute'], rng)}", codes[n], first=True)


script = family_script(_compute_or_answer, plan=_solution)
