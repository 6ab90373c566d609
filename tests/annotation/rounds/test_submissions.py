from __future__ import annotations

from typing import Any

import pytest

from darkroom.annotation.rounds.campaign import Terms
from darkroom.annotation.rounds.submissions import Submission, read_submission, worked_seconds
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from tests.annotation.desk import ANN, SIZE, accepts, box, choice, number, record, rejects, text

TERMS = Terms(0.05, 2)


def submission(result: Any, round: str = "annotate", **more: Any) -> Submission:
    raw = {"id": 7, "completed_by": ANN, "updated_by": None, "created_at": "2026-05-01T10:00:00Z", "lead_time": 3.5}
    return read_submission(raw | {"result": result} | more, TERMS.gate(round, SIZE))


def error(result: Any, round: str = "annotate", **more: Any) -> RowError:
    with pytest.raises(RowError) as caught:
        submission(result, round, **more)
    return caught.value


def test_a_record_is_read_in_any_order() -> None:
    found = submission(list(reversed(record())))
    assert (found.fields.question, found.fields.answer, found.fields.category) == (
        "What does the sign say?",
        "42",
        "ocr",
    )
    assert found.fields.boxes == ((400, 600, 560, 690),)
    assert found.person_id == ANN


@pytest.mark.parametrize(
    ("sent", "counted"),
    [(3.5, 3.5), (0, 0.0), (None, None), (-1e12, None), (1e9, None), (float("nan"), None), ("60", None), ([], None)],
)
def test_a_time_that_an_earlier_version_took_counts_if_it_can_be(sent: Any, counted: float | None) -> None:
    assert worked_seconds({"lead_time": sent}) == counted
    assert worked_seconds({}) is None


def test_a_box_without_a_frame_is_on_the_stored_image() -> None:
    bare = {name: value for name, value in box().items() if not name.startswith("original")}
    assert submission([bare, *record()[1:]]).fields.boxes == ((400, 600, 560, 690),)


@pytest.mark.parametrize(
    ("result", "reason", "said"),
    [
        (None, Reason.BROKEN_SUBMISSION, "NoneType, not a list"),
        (["text"], Reason.BROKEN_SUBMISSION, "no object with a value"),
        ([{"from_name": "nope", "value": {}}], Reason.BROKEN_SUBMISSION, "The form has no field 'nope'"),
        (
            [*record(), text("answer", "x") | {"value": {"text": [3]}}],
            Reason.BROKEN_SUBMISSION,
            "The answer is [3], not a text",
        ),
        ([*record(), choice("category", "ocr", "chart")], Reason.BROKEN_SUBMISSION, "several choices"),
        (record()[1:], Reason.BREAKS_RULES, "Draw at least one box"),
        ([box(width=40, height=40), *record()[1:]], Reason.BREAKS_RULES, "covers 16.00 % of the image"),
        ([box(value={"rotation": 30}), *record()[1:]], Reason.BREAKS_RULES, "is rotated"),
        ([box(original_width=3000), *record()[1:]], Reason.FOREIGN_FRAME, "drawn on 3000x3000 pixels"),
        ([box(image_rotation=90), *record()[1:]], Reason.FOREIGN_FRAME, "turned by 90"),
        (record(answer=" "), Reason.BREAKS_RULES, "The answer is empty"),
        (record(question=""), Reason.BREAKS_RULES, "The question is empty"),
        (record(category="sport"), Reason.BREAKS_RULES, "The category is 'sport'"),
        (record(category="quantity"), Reason.BREAKS_RULES, "The count is missing"),
        (
            [*record(category="quantity"), number("count", 41)],
            Reason.BREAKS_RULES,
            "The answer says '42', the count 41",
        ),
        ([*record(category="quantity"), number("count", 1.5)], Reason.BREAKS_RULES, "The count is 1.5"),
        ([*record(category="quantity"), number("count", -1)], Reason.BREAKS_RULES, "The count is -1"),
    ],
)
def test_a_record_that_breaks_the_rules_is_a_typed_reject(result: Any, reason: Reason, said: str) -> None:
    found = error(result)
    assert (found.reason, said in found.evidence) == (reason, True), found.evidence


@pytest.mark.parametrize(
    ("result", "round", "said"),
    [
        ([text("blind_answer", "4")], "cross_check", "Choose a verdict"),
        ([choice("verdict", "perhaps"), text("blind_answer", "4")], "cross_check", "Choose a verdict"),
        (accepts(blind=""), "cross_check", "Your own answer is missing"),
        ([text("blind_answer", "4"), choice("verdict", "fix"), *record()[:3]], "cross_check", "The answer is empty"),
        ([choice("verdict", "reject")], "accept", "Say why you reject it"),
    ],
)
def test_a_check_that_says_too_little_is_a_typed_reject(result: Any, round: str, said: str) -> None:
    found = error(result, round)
    assert (found.reason, said in found.evidence) == (Reason.BREAKS_RULES, True), found.evidence


def test_an_acceptance_by_an_expert_needs_no_answer_of_their_own() -> None:
    assert submission([choice("verdict", "accept")], "accept").verdict == "accept"


def test_reasons_are_kept() -> None:
    assert submission(rejects("bad_box", "too_easy"), "cross_check").reasons == ("bad_box", "too_easy")


def test_a_submission_without_an_account_is_broken() -> None:
    assert error(record(), completed_by={"email": "x"}).reason is Reason.BROKEN_SUBMISSION


def test_exactly_the_limit_is_allowed() -> None:
    assert submission([box(width=25, height=20), *record()[1:]]).fields.boxes
