"""A checker's view and rights before and after an own answer; on a server: tests/soak/test_annotation_access.py."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.annotation._plugin.darkroom_studio.validation import (
    answer_problem,
    find_blind_errors,
    find_submission_errors,
    is_blind_first,
    served_task,
)
from darkroom.annotation.label_studio.forms import form
from darkroom.annotation.rounds.campaign import Campaign, terms_of
from darkroom.annotation.rounds.next_tasks import record_task
from darkroom.annotation.rounds.submissions import RecordFields, RecordState, read_submission
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.geometry import Box
from tests.annotation.desk import ANN, BOB, ITEM, SIZE, accepts

IMAGE = ImageRef(ITEM, *SIZE, "RGB", "JPEG")
FIELDS = RecordFields("Which number?", "secret 42", "ocr", None, (Box(10, 20, 110, 80),))
RULES = {"kind": "cross_check", "blind_first": True, "max_share": 0.05, "accept_needs_box": True}


def handed_out(round: str) -> dict[str, Any]:
    state = RecordState(ITEM, round=round, fields=FIELDS, authors=[ANN], judges=[BOB])
    terms = terms_of(Campaign(), round)
    return {
        "id": 3,
        **record_task(PoolImage(IMAGE, "ours", "a.jpg", "CC0-1.0"), state, round=round, terms=terms),
    }


def test_before_an_own_answer_nothing_of_the_record_but_its_question_is_served() -> None:
    task = handed_out("cross_check")
    assert "secret 42" in str(task)
    served = served_task(task, "")
    assert "secret 42" not in str(served)
    assert "box" not in str(served["predictions"])
    assert served["data"]["own_answer"] == ""
    assert {*task["data"], "own_answer"} == set(served["data"]), "the form misses none of its data"
    assert "secret 42" in str(task), "the task itself stays as it is"


def test_after_an_own_answer_the_record_is_served_with_it_in_the_form() -> None:
    served = served_task(handed_out("cross_check"), "41")
    assert "secret 42" in served["data"]["record_shown"]
    (record,) = served["predictions"]
    raw = {"id": 1, "completed_by": BOB, "result": [*record["result"], accepts()[1]]}
    read = read_submission(raw, terms_of(Campaign(), "cross_check").gate("cross_check", SIZE))
    assert (read.blind_answer, read.fields.boxes) == ("41", FIELDS.boxes)


@pytest.mark.parametrize(("round", "is_blind"), [("annotate", False), ("cross_check", True), ("accept", False)])
def test_only_a_cross_check_is_blind(round: str, is_blind: bool) -> None:
    assert is_blind_first(handed_out(round)["data"]["gate"]) == is_blind
    assert ("dr-own-answer" in form(round)) == is_blind


@pytest.mark.parametrize("gate", [None, "x", [], {}, {"kind": "cross_check"}, {**RULES, "blind_first": "yes"}])
def test_tasks_of_older_versions_and_of_other_teams_are_not_blind(gate: Any) -> None:
    assert not is_blind_first(gate)
    if isinstance(gate, dict):
        assert find_blind_errors(accepts(), gate, "") == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("No. 7_a <b>", ""),
        ("ב 42", ""),
        ("x" * 1000, ""),
        ("x" * 1001, "1,001 characters"),
        ("", "Answer the question first."),
        (" \u200b\t", "Answer the question first."),
        (None, "Answer the question first."),
        (["x"], "Answer the question first."),
        ("a\0b", "one line"),
        ("a\nb", "one line"),
        ("a\ud800", "one line"),
    ],
)
def test_an_answer_is_a_line_that_can_be_read_and_stored(answer: Any, problem: str) -> None:
    assert problem in answer_problem(answer)
    assert bool(problem) == bool(answer_problem(answer))


def test_a_submission_repeats_the_settled_answer() -> None:
    def errors(settled: str, blind: str = "42", *, method: str = "POST", **body: Any) -> list[str]:
        sent = {"result": accepts(blind), **body}
        return find_submission_errors(sent, RULES, method=method, query={}, stored=accepts("42"), settled=settled)

    assert errors("42") == []
    assert "Answer the question before you judge" in errors("")[0]
    for method in ("POST", "PATCH", "PUT"):
        assert errors("41", method=method) == [
            "Your own answer was “41”, before you saw the record. It cannot be changed."
        ]
    assert errors("", was_cancelled=True, result=[]) == [], "a task may be skipped before"


def test_a_skip_turned_into_a_submission_is_judged_by_the_settled_answer() -> None:
    body = {"was_cancelled": False}
    for settled, n_errors in (("42", 0), ("41", 1), ("", 1)):
        found = find_submission_errors(body, RULES, method="PATCH", query={}, stored=accepts("42"), settled=settled)
        assert len(found) == n_errors
