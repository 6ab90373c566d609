"""The oracle of ``math_code``: the long solution, then code that computes it, and the answer."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import family_script
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme
from pipelines.models.protocols.markup import write_box
from pipelines.records.samples import reference_solution


def _solution(turn: CompletionRequest) -> str:
    """The idea, every step, the answer in its box."""
    solution = reference_solution(turn.task.sample)
    answer = turn.task.sample.answer.strip("$")
    return "\n\n".join([solution.idea, *solution.steps, f"The final answer is {write_box(answer)}."])


def _compute_or_answer(turn: CompletionRequest) -> str:
    """A computation, for every other problem a second one that checks it, then the answer."""
    solution, rng, n = reference_solution(turn.task.sample), random.Random(turn.task.seed), len(turn.rounds)
    codes = solution.programs[: rng.choice((1, 2))]
    if n < len(codes):
        thought = f"{solution.idea} {rng.choice(_COMPUTE)}" if not n else rng.choice(_VERIFY).format(seen=solution.seen)
        return Thyme().write_round(thought, codes[n], first=not n)
    answer = turn.task.sample.answer
    return Thyme().write_answer(rng.choice(_CONCLUDE).format(seen=solution.seen, answer=answer), answer, first=not n)


script = family_script(_compute_or_answer, plan=_solution)


_COMPUTE = (
    "I will let a few lines of Python do it.",
    "A short program settles it.",
    "Rather than do this by hand, I compute it.",
    "I write that down as code and run it.",
)
_VERIFY = (
    "That should be {seen}. I check it before I answer.",
    "I have {seen}; a quick check shows whether it holds.",
    "Before I rely on this, I verify it.",
)
_CONCLUDE = (
    "The output gives {seen}: {answer}.",
    "So {seen} is {answer}.",
    "The program found {answer}, which is {seen} that was asked for.",
)
