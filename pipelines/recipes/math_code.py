r"""Computational code: lean programs, converted from a long solution (Thyme appendix B, Coding Data 4).

Two stages, because whoever solves well writes overlong code (Thyme, footnote 2): the drafting policy writes a complete
solution, which must end with the right answer; the converting policy turns it into a short trajectory whose programs
compute the result. The solution is privileged: the trajectory stands on its own. All rounds are trained.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.checks import (
    answer_verified,
    executes,
    output_supports_answer,
    program_computes,
    solution_stays_hidden,
)
from pipelines.grading import grade
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Malformed, Thyme
from pipelines.protocols.boxed import one_answer, write_box
from pipelines.recipes.base import Plan, Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared
from pipelines.worked import Worked, worked_of

CATEGORY = "math"
"""Samples whose category has this in it are problems to be computed."""

MAX_SOLUTION_CHARS = 20_000
"""A longer solution is no material for a lean program."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The problem as it is, with its images if it has any."""
    if CATEGORY not in sample.category.casefold() or sample.videos:
        raise RowFault(Reason.NOT_APPLICABLE, f"a {sample.category or 'nameless'} sample is no mathematical problem")
    return Prepared(sample.images)


def read_solution(text: str, sample: Sample) -> Mapping[str, Any]:
    """The solution as the prompt's slot. Raises ``RowFault`` (wrong_plan) unless it ends with the right answer."""
    box = one_answer(text)
    if box is None or isinstance(box, Malformed):
        raise RowFault(
            Reason.WRONG_PLAN, r"the solution has no final answer in \boxed{}" if box is None else box.evidence
        )
    if len(text) > MAX_SOLUTION_CHARS:
        raise RowFault(Reason.WRONG_PLAN, f"the solution has {len(text)} characters, more than {MAX_SOLUTION_CHARS}")
    found = grade(box.answer, sample)
    if not found.right:
        raise RowFault(Reason.WRONG_PLAN, f"the solution's answer is wrong: {found.kind}: {found.detail}")
    return {"solution": text.strip()}


def write_solution(turn: Turn) -> str:
    """The oracle's solution: the idea, every step, the answer in its box."""
    worked = worked_of(turn.task.sample)
    answer = turn.task.sample.answer.strip("$")
    return "\n\n".join([worked.idea, *worked.steps, f"The final answer is {write_box(answer)}."])


def script(turn: Turn) -> str:
    """The oracle's trajectory: a program, for every other problem one that checks it, the answer."""
    worked = worked_of(turn.task.sample)
    draw = random.Random(turn.task.seed)
    programs = worked.programs[: draw.choice((1, 2))]
    if len(turn.rounds) < len(programs):
        return _computation(worked, programs, turn, draw)
    return _conclusion(worked, turn, draw)


def _computation(worked: Worked, programs: tuple[str, ...], turn: Turn, draw: random.Random) -> str:
    n = len(turn.rounds)
    thought = f"{worked.idea} {draw.choice(_COMPUTE)}" if not n else draw.choice(_VERIFY).format(seen=worked.seen)
    return Thyme().write_round(thought, programs[n], first=not n)


def _conclusion(worked: Worked, turn: Turn, draw: random.Random) -> str:
    answer = turn.task.sample.answer
    thought = draw.choice(_CONCLUDE).format(seen=worked.seen, answer=answer)
    return Thyme().write_answer(thought, answer, first=not turn.rounds)


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

recipe = Recipe(
    family="math_code",
    description="Computational code: a long solution turned into lean programs that compute it (Thyme App. B).",
    file=Path(__file__),
    prompt=bundled_prompt("math_code"),
    protocol=Thyme(),
    prepare=prepare,
    plan=Plan(prompt=bundled_prompt("solution"), read=read_solution, script=write_solution),
    writer="convert",
    script=script,
    checks=(executes, program_computes, output_supports_answer, answer_verified, solution_stays_hidden),
    loss_policy="all_rounds",
    max_rounds=4,
    n_wanted=15_000,
)
