"""Scripts of the oracle for problems to be computed or drawn; each family's phrases and code are in a TOML file."""

from random import Random

from darkroom.pipelines.demo import data_beside, some_form
from darkroom.pipelines.demo.oracle.family_script import family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme, ToolCall
from darkroom.pipelines.models.protocols.markup import write_box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import reference_solution

_MATHS = data_beside(__file__, "math_code")


def _solution(turn: CompletionRequest) -> str:
    solution = reference_solution(turn.task.sample)
    answer = turn.task.sample.answer.strip("$")
    return "\n\n".join([solution.idea, *solution.steps, f"The final answer is {write_box(answer)}."])


def _compute_or_answer(turn: CompletionRequest) -> str:
    """A computation, for every other problem a second one that checks it, then the answer."""
    solution, rng, n = reference_solution(turn.task.sample), Random(turn.task.seed), len(turn.rounds)
    codes, answer = solution.programs[: rng.choice((1, 2))], turn.task.sample.answer
    if n >= len(codes):
        thought = some_form(_MATHS["conclude"], rng).format(seen=solution.seen, answer=answer)
        return Thyme().write_answer(thought, answer, first=not n)
    if n:
        return Thyme().write_round(some_form(_MATHS["verify"], rng).format(seen=solution.seen), codes[n], first=False)
    return Thyme().write_round(f"{solution.idea} {some_form(_MATHS['compute'], rng)}", codes[n], first=True)


math_code = family_script(_compute_or_answer, plan=_solution)
"""The long solution, then code that computes it, and the answer."""


_FIGURE = data_beside(__file__, "figure")


def _draw_or_answer(turn: CompletionRequest) -> str:
    solution, rng = reference_solution(turn.task.sample), Random(turn.task.seed)
    why, shows = some_form(_FIGURE["draw"], rng), some_form(_FIGURE["shows"], rng)
    if not solution.drawn:
        raise RowError(Reason.UNSUITABLE, "the source knows no drawing of this problem; only a model can make one")
    if not turn.rounds:
        return ToolCall().write_round(f"{solution.idea} {why}", solution.programs[0], first=True)
    answer = turn.task.sample.answer
    return ToolCall().write_answer(shows.format(seen=solution.seen, answer=answer), answer, first=False)


figure = family_script(_draw_or_answer)
"""The source's drawing of the problem, then what it shows."""
