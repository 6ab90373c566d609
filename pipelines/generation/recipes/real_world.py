"""Real world: the policy decides what the image needs, does it in one program, looks and answers (Thyme appendix B).
The prompt holds no privileged fact and no image is altered. The operation is the policy's own decision
(``pipelines/generation/operation_planning.py``); samples that can be answered directly are not applicable."""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.operation_planning import plan
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.verification.checks import (
    Necessity,
    answer_matches,
    consistency,
    executes,
    hint_stays_hidden,
    judge_effective,
    operation_applied,
    shows_an_image,
)

recipe = Recipe(
    family="real_world",
    description="The policy decides what the image needs, does it in code, looks and answers (Thyme App. B, table 9).",
    file=Path(__file__),
    prompt=bundled_prompt("real_world"),
    protocol=Thyme(),
    samples=Applicability(images=True, also="the policy decides to work on the image"),
    checks=(
        executes,
        shows_an_image,
        operation_applied,
        answer_matches,
        hint_stays_hidden,
        consistency,
        judge_effective,
    ),
    max_rounds=1,
    plan=plan(keeps=lambda decided: decided.needs_work),
    n_wanted=50_000,
    necessity=Necessity(),
)
