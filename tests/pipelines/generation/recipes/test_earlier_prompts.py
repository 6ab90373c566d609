"""A workspace of a version with other prompts: what a policy wrote to them is used, and goes on as it began."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import earlier_versions
from tests.pipelines.scripted import Scripted

LOOK = (
    "<think>Let me look closer.\n<code>\n```python\nfrom PIL import Image\nimage = Image.open(image_path)\n"
    "image.crop((40, 60, 90, 90)).save('/mnt/data/temp_processed_images/a.png')\n```\n</code>"
)
ANSWER = "It is there.</think>\n<answer>S0X</answer>"


def before_this(recipe: Recipe) -> Recipe:
    """As the version before had it."""
    [prompt] = earlier_versions(recipe.prompt)
    return replace(recipe, prompt=prompt)


@pytest.mark.parametrize("name", ["crop", "direct", "error_correction", "further_enhancement"])
def test_a_draft_that_was_paid_to_an_earlier_prompt_is_not_paid_again(signs, name) -> None:
    family = signs(name)
    earlier = before_this(family.recipe)
    plan = '{"issue": "fine as it is", "operation": -1}'
    paid, asked = (Scripted(lambda turn: plan if turn.task.stage == "plan" else LOOK) for _ in range(2))
    before = replace(family, recipe=earlier).draft(paid)
    report = family.draft(asked)
    assert before.n_out > 0
    assert (report.performed, report.n_out, asked.turns) == (0, before.n_out, [])
    assert family.run(asked).n_rejected + family.run(asked).n_out == report.n_out, "the runs know which prompt it was"


def test_a_second_turn_is_told_what_the_first_one_was(signs) -> None:
    """Drafts of earlier versions knew the exact region; a request that says it otherwise would be paid for again."""
    family = signs("error_correction")
    earlier = before_this(family.recipe)
    replace(family, recipe=earlier).draft(Scripted(lambda turn: LOOK))
    family.draft(Scripted(lambda turn: ""))
    policy = Scripted(lambda turn: ANSWER)
    family.run(policy)
    assert policy.turns
    for turn in policy.turns:
        assert turn.task.hint["region"] in str(turn.messages[-1])
        assert "told_region" not in turn.task.hint
