"""Direct: the image answers the question as it is, so no code is written (Thyme appendix B, table 9). The policy
decides first (``pipelines/generation/operation_planning.py``); samples that need work on their image are not
applicable. The selection keeps a seeded sample of as many right answers as are wanted."""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.operation_planning import plan
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.verification.checks import Necessity, answer_matches, consistency, hint_stays_hidden, no_program

recipe = Recipe(
    family="direct",
    description="No code: the policy calls the question directly answerable and answers it (Thyme App. B, table 9).",
    file=Path(__file__),
    prompt=bundled_prompt("direct"),
    protocol=Thyme(),
    samples=Applicability(images=True, also="the policy calls the question directly answerable"),
    checks=(no_program, answer_matches, consistency, hint_stays_hidden),
    max_rounds=0,
    plan=plan(keeps=lambda decided: not decided.needs_work),
    n_wanted=100_000,
    necessity=Necessity(max_without_tools=None),
)
