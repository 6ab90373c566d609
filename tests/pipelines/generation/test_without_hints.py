"""A family without hints, as a trained model meets it."""

from __future__ import annotations

import pytest

from darkroom.pipelines.generation.engine import Family, intake
from darkroom.pipelines.generation.recipes import load_recipes, without_hints
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.students import Student


def test_a_student_is_asked_in_its_protocols_words_and_sandbox_and_checks_decide(workspace: Workspace) -> None:
    intake(workspace, SmallSource(), 0, "turn-1")
    family, student = Family(workspace, without_hints(load_recipes()["crop"]), "turn-1"), Student()
    family.draft(student)
    family.run(student)
    family.check()
    assert family.keep().n_out == 1
    assert student.requests
    for request in student.requests:
        sample = request.task.sample
        assert request.messages[:2] == Thyme().opening(question_text(sample), sample.images)
        assert request.task.hint["region"] not in str(request.messages[:2])


@pytest.mark.parametrize("family", ["crop", "operation_aware", "error_correction"])
def test_without_hints_nothing_is_planned_or_told(family: str) -> None:
    recipe = without_hints(load_recipes()[family])
    assert (recipe.plan, recipe.follow_up, recipe.prompt.name) == (None, None, recipe.protocol.name)
    assert recipe.checks == load_recipes()[family].checks
    assert recipe.digest != load_recipes()[family].digest
