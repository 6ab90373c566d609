from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.label_studio.forms import OPTIONS
from darkroom.annotation.queues.base import QueueVerdicts, read_verdicts
from darkroom.annotation.queues.table_queues import labels_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import TaskRequest
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.records.reject_reasons import Reason
from tests.annotation.desk import ADMIN, ANN, EVE, FAY, PEOPLE, choice, text


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path)
    journal.set_people(PEOPLE)
    review, verify = journal.request([TaskRequest("review", "row", 0, 0), TaskRequest("verify", "row", 0, 0)])
    journal.add_tasks(9, [(review, 1), (verify, 2)])
    return journal


def enter(journal: Journal, task: int, *raws: dict[str, Any]) -> None:
    with journal.transaction():
        journal.add_versions(task, raws)


def raw(person: int | str, *result: dict[str, Any], number: int = 1, **more: Any) -> dict[str, Any]:
    known = {"id": number, "completed_by": person, "updated_by": None, "was_cancelled": False, "lead_time": 4.0}
    return known | {"result": list(result), "created_at": "2026-05-01T10:00:00Z"} | more


def reviewed(journal: Journal) -> QueueVerdicts:
    return read_verdicts(journal, "review")


def test_a_verdict_is_read_with_its_reasons(journal: Journal) -> None:
    result = (choice("verdict", "reject"), choice("reason", "leaks", "wrong_answer"), text("comment", "see round 1"))
    enter(journal, 1, raw(EVE, *result))
    [verdict] = reviewed(journal).verdicts
    assert (verdict.item_id, verdict.verdict, verdict.reasons) == ("row", "reject", ("leaks", "wrong_answer"))
    assert (verdict.comment, verdict.person, verdict.lead_seconds) == ("see round 1", "eve@example.com", 4.0)


def test_reasons_of_an_acceptance_do_not_count(journal: Journal) -> None:
    enter(journal, 1, raw(EVE, choice("verdict", "accept"), choice("reason", "leaks")))
    assert reviewed(journal).verdicts[0].reasons == ()


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (raw(ANN, choice("verdict", "accept")), Reason.WRONG_PERSON),
        (raw(99, choice("verdict", "accept")), Reason.WRONG_PERSON),
        (raw(EVE, choice("verdict", "accept"), updated_by=ADMIN), Reason.FORGED_SUBMISSION),
        (raw(EVE), Reason.BREAKS_RULES),
        (raw(EVE, choice("verdict", "fix")), Reason.BREAKS_RULES),
        (raw(EVE, choice("verdict", "accept", "reject")), Reason.BREAKS_RULES),
        (raw(EVE, choice("verdict", "reject")), Reason.BREAKS_RULES),
        (raw(EVE, choice("verdict", "reject"), choice("reason", "because")), Reason.BREAKS_RULES),
        (raw(EVE, result="text"), Reason.BROKEN_SUBMISSION),
        (raw(EVE, choice("verdict", "accept"), choice("match", "match")), Reason.BROKEN_SUBMISSION),
        (raw("eve", choice("verdict", "accept")), Reason.BROKEN_SUBMISSION),
    ],
)
def test_what_does_not_count_is_refused_and_the_row_waits(journal: Journal, found: dict, reason: Reason) -> None:
    enter(journal, 1, found)
    got = reviewed(journal)
    assert ([one.reason for one in got.invalid], got.verdicts, got.n_waiting) == ([reason], [], 1)


def test_the_first_of_two_counts(journal: Journal) -> None:
    enter(journal, 1, raw(EVE, choice("verdict", "accept")), raw(FAY, choice("verdict", "accept"), number=2))
    got = reviewed(journal)
    assert [one.person for one in got.verdicts] == ["eve@example.com"]
    assert [one.reason for one in got.invalid] == [Reason.DUPLICATE_SUBMISSION]


def test_a_verdict_that_was_changed_is_the_latest(journal: Journal) -> None:
    enter(journal, 1, raw(EVE, choice("verdict", "accept")))
    enter(journal, 1, raw(EVE, choice("verdict", "reject"), choice("reason", "leaks")))
    assert reviewed(journal).verdicts[0].verdict == "reject"


def test_skips_leave_the_row_waiting(journal: Journal) -> None:
    enter(journal, 1, raw(EVE, was_cancelled=True))
    assert (reviewed(journal).verdicts, reviewed(journal).invalid, reviewed(journal).n_waiting) == ([], [], 1)


@pytest.mark.parametrize("person", [ANN, EVE])
@pytest.mark.parametrize("chosen", ["match", "mismatch", "unsure"])
def test_public_rows_are_verified_by_anybody(journal: Journal, person: int, chosen: str) -> None:
    enter(journal, 2, raw(person, choice("match", chosen)))
    assert [one.verdict for one in read_verdicts(journal, "verify").verdicts] == [chosen]
    assert not reviewed(journal).verdicts


def test_a_verdict_becomes_labels_of_the_checks_that_it_speaks_of(journal: Journal) -> None:
    recipe = load_recipes()["real_world"]
    enter(journal, 1, raw(EVE, choice("verdict", "accept")))
    [accepted] = reviewed(journal).verdicts
    judged = {line["check"] for line in labels_of(recipe, accepted)}
    assert judged
    assert {line["verdict"] for line in labels_of(recipe, accepted)} == {"accept"}
    enter(journal, 1, raw(EVE, choice("verdict", "reject"), choice("reason", "useless_operation")))
    [rejected] = reviewed(journal).verdicts
    assert [(line["check"], line["verdict"]) for line in labels_of(recipe, rejected)] == [("judge_effective", "reject")]


def test_every_reason_that_can_be_blamed_can_be_chosen() -> None:
    from darkroom.annotation.queues.table_queues import BLAMED

    known = {reason.name for reason in OPTIONS["review_reasons"]}
    assert {reason for reasons in BLAMED.values() for reason in reasons} <= known
