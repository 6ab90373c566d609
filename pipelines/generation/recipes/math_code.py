r"""Computational code: lean programs, converted from a long solution (Thyme appendix B, Coding Data 4).

Two stages, because whoever solves well writes overlong code (Thyme, footnote 2): the drafting policy writes a complete
solution, which must end with the right answer; the converting policy turns it into a short trajectory whose programs
compute the result. The solution is privileged: the trajectory stands on its own. All rounds are trained.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Plan, Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Malformed, Thyme
from darkroom.pipelines.models.protocols.markup import one_answer
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.checks import (
    answer_verified,
    executes,
    output_supports_answer,
    program_computes,
    solution_stays_hidden,
)
from darkroom.pipelines.verification.grading import grade

MAX_SOLUTION_CHARS = 20_000
"""A longer solution is no material for a lean program."""


def read_solution(text: str, sample: Sample) -> Mapping[str, Any]:
    """The solution as the prompt's slot. Raises ``RowError`` (wrong_plan) unless it ends with the right answer."""
    box = one_answer(text)
    if box is None or isinstance(box, Malformed):
        evidence = r"the solution has no final answer in \boxed{}" if box is None else box.evidence
        raise RowError(Reason.WRONG_PLAN, evidence)
    if len(text) > MAX_SOLUTION_CHARS:
        raise RowError(Reason.WRONG_PLAN, f"the solution has {len(text)} characters, more than {MAX_SOLUTION_CHARS}")
    graded = grade(box.answer, sample)
    if not graded.right:
        raise RowError(Reason.WRONG_PLAN, f"the solution's answer is wrong: {graded.kind}: {graded.detail}")
    return {"solution": text.strip()}


recipe = Recipe(
    family="math_code",
    description="Computational code: a long solution turned into lean programs that compute it (Thyme App. B).",
    file=Path(__file__),
    prompt=bundled_prompt("math_code"),
    protocol=Thyme(),
    samples=Applicability(videos=False, categories=("math",), also="the answer can be verified"),
    plan=Plan(prompt=bundled_prompt("solution"), read=read_solution),
    writer="convert",
    checks=(executes, program_computes, output_supports_answer, answer_verified, solution_stays_hidden),
    loss_policy="all_rounds",
    max_rounds=4,
    n_wanted=15_000,
)
