"""A turn of the flywheel: what the student reads, what is counted, what is not done again."""

from __future__ import annotations

import pytest

from darkroom.pipelines.generation.flywheel import TurnReport, write_turn
from darkroom.pipelines.generation.recipes import load_recipes, without_hints
from darkroom.pipelines.models.policies import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.students import opened


def turn(workspace: Workspace, requests: list[CompletionRequest]) -> TurnReport:
    recipe = load_recipes()["crop"]
    return write_turn(workspace, recipe, SmallSource(), 0, "turn-1", student=opened(requests))


def test_the_student_is_asked_in_its_protocols_words(workspace: Workspace) -> None:
    requests: list[CompletionRequest] = []
    turn(workspace, requests)
    for request in requests:
        sample = request.task.sample
        assert request.messages[:2] == Thyme().opening(question_text(sample), sample.images)
        assert request.task.hint["region"] not in str(request.messages[:2])


def test_what_was_drafted_and_kept_is_counted(workspace: Workspace) -> None:
    report = turn(workspace, [])
    assert (report.n_drafted, report.funnel.n_accepted, report.accepted_share) == (4, 1, 0.25)
    # four first turns and three answers, of 100 tokens each: the rejected rows are paid for as well
    assert report.funnel.tokens_per_row == 700
    assert report.seconds_per_row == report.seconds


def test_a_finished_turn_asks_nothing_again_and_tells_no_time(workspace: Workspace) -> None:
    first, requests = turn(workspace, []), []
    again = turn(workspace, requests)
    assert (again.funnel, requests, again.seconds) == (first.funnel, [], None)


def test_a_turn_that_an_earlier_run_began_tells_no_time(workspace: Workspace) -> None:
    turn(workspace, [])
    workspace.tables.path(TableKey(("crop", "drafts"), "turn-1")).unlink()
    assert turn(workspace, []).seconds_per_row is None


@pytest.mark.parametrize("family", ["crop", "operation_aware", "error_correction"])
def test_without_hints_nothing_is_planned_or_told(family: str) -> None:
    recipe = without_hints(load_recipes()[family])
    assert (recipe.plan, recipe.follow_up, recipe.prompt.name) == (None, None, recipe.protocol.name)
    assert recipe.checks == load_recipes()[family].checks
    assert recipe.digest != load_recipes()[family].digest
