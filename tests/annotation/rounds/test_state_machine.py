from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.annotation.rounds.next_tasks import reasons_shown
from darkroom.pipelines.records.annotation import FieldChange
from darkroom.pipelines.records.reject_reasons import Reason
from tests.annotation.desk import ADMIN, ANN, BOB, CEM, EVE, FAY, Desk, accepts, box, fixes, record, rejects


def written(desk: Desk, person: int = ANN) -> None:
    desk.submit(desk.hand_out(), person, record())


def checked(desk: Desk) -> None:
    written(desk)
    desk.submit(desk.hand_out(), BOB, accepts())


def test_a_record_is_written_checked_and_accepted(desk: Desk) -> None:
    checked(desk)
    desk.submit(desk.hand_out(), EVE, accepts())
    state = desk.state()
    assert (state.stage, state.attempt) == ("accepted", 0)
    assert state.fields is not None
    assert (state.fields.question, state.fields.answer) == ("What does the sign say?", "42")
    assert state.fields.boxes == ((400, 600, 560, 690),)
    said = [(event.round, event.person, event.verdict, event.lead_seconds) for event in state.history]
    assert said == [
        ("annotate", "ann@example.com", "", 12.5),
        ("cross_check", "bob@example.com", "accept", 12.5),
        ("accept", "eve@example.com", "accept", 12.5),
    ]
    assert not state.invalid


def test_a_fix_replaces_the_record_and_says_what_changed(desk: Desk) -> None:
    written(desk)
    desk.submit(desk.hand_out(), BOB, fixes("43"))
    state = desk.state()
    assert state.round == "accept"
    assert state.fields is not None
    assert state.fields.answer == "43"
    event = state.history[-1]
    assert [(change.name, change.before, change.after) for change in event.changes] == [("answer", "42", "43")]
    assert (event.blind_answer, event.blind_match) == ("43", False)


def test_a_fix_that_changes_nothing_is_an_acceptance(desk: Desk) -> None:
    written(desk)
    desk.submit(desk.hand_out(), BOB, fixes("42"))
    assert desk.state().history[-1].verdict == "accept"


def test_an_acceptance_with_a_moved_box_is_a_fix(desk: Desk) -> None:
    written(desk)
    moved = [*accepts()[:2], box(x=50)]
    desk.submit(desk.hand_out(), BOB, moved)
    event = desk.state().history[-1]
    assert event.verdict == "fix"
    assert [change.name for change in event.changes] == ["boxes"]


def test_a_rejected_record_is_written_anew_with_its_reasons_and_at_most_twice(desk: Desk) -> None:
    for attempt in range(3):
        written(desk)
        assert desk.state().attempt == attempt
        desk.submit(desk.hand_out(), BOB if attempt % 2 == 0 else CEM, rejects("too_easy"))
    state = desk.state()
    assert (state.stage, state.attempt, state.reason) == ("rejected", 2, "rejected in cross_check for too_easy")


def test_an_expert_sends_a_record_back(desk: Desk) -> None:
    checked(desk)
    desk.submit(desk.hand_out(), EVE, rejects("bad_box"))
    state = desk.state()
    assert (state.stage, state.round, state.attempt) == ("waiting", "rework", 1)
    assert state.history[-1].reasons == ("bad_box",)


def test_authors_have_seats_in_checks_and_checkers_in_acceptance(desk: Desk) -> None:
    written(desk)
    assert desk.state().excluded == [ANN]
    desk.submit(desk.hand_out(), BOB, accepts())
    assert desk.state().excluded == [ANN, BOB]
    desk.submit(desk.hand_out(), EVE, rejects())
    assert desk.state().excluded == [EVE]
    written(desk, CEM)
    assert desk.state().excluded == [ANN, CEM]


@pytest.mark.parametrize(("person", "why"), [(ANN, "wrote this record"), (EVE, "for the role annotator")])
def test_a_check_by_the_wrong_person_is_refused_and_asked_for_again(desk: Desk, person: int, why: str) -> None:
    written(desk)
    task = desk.hand_out()
    desk.submit(task, person, accepts())
    state = desk.state()
    assert [(one.reason, why in one.evidence) for one in state.invalid] == [(Reason.WRONG_PERSON, True)]
    assert state.next_request is not None
    assert (state.next_request.round, state.next_request.serial) == ("cross_check", 1)
    desk.submit(desk.hand_out(), BOB, accepts())
    assert desk.state().round == "accept"


def test_a_checker_cannot_accept(desk: Desk) -> None:
    checked(desk)
    desk.submit(desk.hand_out(), BOB, accepts())
    assert desk.state().invalid[-1].reason is Reason.WRONG_PERSON


def test_a_second_submission_is_refused_and_the_first_counts(desk: Desk) -> None:
    task = desk.hand_out()
    desk.submit(task, ANN, record("first"))
    desk.submit(task, ANN, record("again"))
    desk.submit(task, CEM, record("other"))
    state = desk.state()
    assert state.fields is not None
    assert state.fields.answer == "first"
    assert [one.reason for one in state.invalid] == [Reason.DUPLICATE_SUBMISSION] * 2


def test_a_submission_that_somebody_else_signed_is_refused(desk: Desk) -> None:
    written(desk)
    desk.submit(desk.hand_out(), BOB, accepts(), updated_by=ADMIN)
    refused = desk.state().invalid[-1]
    assert refused.reason is Reason.FORGED_SUBMISSION
    assert (refused.person, "signed by account 3" in refused.evidence) == ("admin@example.com", True)


def test_an_edit_before_the_next_round_counts(desk: Desk) -> None:
    task = desk.hand_out()
    annotation = desk.submit(task, ANN, record("42"))
    desk.edit(task, annotation, result=record("44"))
    state = desk.state()
    assert state.fields is not None
    assert state.fields.answer == "44"


def test_an_edit_after_the_next_round_began_is_refused(desk: Desk) -> None:
    task = desk.hand_out()
    annotation = desk.submit(task, ANN, record("42"))
    check = desk.hand_out()
    desk.edit(task, annotation, result=record("44"))
    desk.submit(check, BOB, accepts())
    state = desk.state()
    assert state.fields is not None
    assert state.fields.answer == "42"
    assert [one.reason for one in state.invalid] == [Reason.LATE_EDIT]


def test_who_entered_it_is_no_edit(desk: Desk) -> None:
    """Label Studio enters ``updated_by`` a moment after the annotation."""
    task = desk.hand_out()
    annotation = desk.submit(task, ANN, record("42"))
    desk.hand_out()
    desk.edit(task, annotation, updated_by=ANN)
    assert not desk.state().invalid


def test_a_deleted_submission_is_waited_for_again(desk: Desk) -> None:
    task = desk.hand_out()
    annotation = desk.submit(task, ANN, record())
    desk.delete(task, annotation)
    state = desk.state()
    assert (state.round, state.fields) == ("annotate", None)


def test_a_skip_is_counted_and_the_record_waits_on(desk: Desk) -> None:
    task = desk.hand_out()
    desk.submit(task, ANN, [], was_cancelled=True)
    assert (desk.state().round, desk.state().skipped_by) == ("annotate", ["ann@example.com"])
    desk.submit(task, BOB, record())
    assert desk.state().round == "cross_check"


def test_a_void_record_is_written_anew(desk: Desk) -> None:
    desk.submit(desk.hand_out(), ANN, [box(width=40, height=40), *record()[1:]])
    state = desk.state()
    assert (state.round, state.attempt, state.invalid[0].reason) == ("rework", 1, Reason.BREAKS_RULES)
    assert "covers 16.00 %" in state.history[-1].reasons[0]


def test_a_check_that_is_void_three_times_gives_the_record_up(desk: Desk) -> None:
    written(desk)
    for _ in range(3):
        desk.submit(desk.hand_out(), EVE, accepts())
    state = desk.state()
    assert (state.stage, state.reason) == ("rejected", "3 void submissions in cross_check")


def test_a_lower_limit_of_reworks_is_kept(tmp_path) -> None:
    desk = Desk(tmp_path, max_rework=0)
    written(desk)
    desk.submit(desk.hand_out(), BOB, rejects())
    assert desk.state().stage == "rejected"


def test_walking_twice_gives_the_same(desk: Desk) -> None:
    checked(desk)
    desk.submit(desk.hand_out(), FAY, rejects())
    assert desk.state() == desk.state()


def test_who_rewrites_a_record_reads_what_was_changed_and_why(desk: Desk) -> None:
    written(desk)
    desk.submit(desk.hand_out(), BOB, fixes("43"))
    desk.submit(desk.hand_out(), EVE, rejects("ambiguous"))
    state = desk.state()
    assert reasons_shown(state).splitlines()[2:-2] == ["- Ambiguous question"]
    changes = (FieldChange("answer", "42", "43"), FieldChange("boxes", "[]", "[[1, 2, 3, 4]]"))
    fix = replace(state.history[-1], verdict="fix", changes=changes, reasons=(), comment="a *note*")
    told = reasons_shown(replace(state, history=[*state.history, fix]))
    assert told.splitlines()[2:-2] == [
        "- Ambiguous question",
        "- Answer: “42” → “43”",
        "- Other boxes",
        "- “a \\*note\\*”",
    ]
