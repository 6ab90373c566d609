"""Reasons, and rows on their way into the table of rejects."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.records import Reject
from darkroom.pipelines.records.reject_reasons import RETRYABLE, Reason, RowError, reject, upgraded_counts
from darkroom.pipelines.records.schemas import from_table, to_table


def test_every_reason_has_a_disposition():
    assert {reason.disposition for reason in Reason} == {"rejected", "quarantined", "not_applicable"}


def test_what_may_pass_later_is_quarantined():
    assert {reason.disposition for reason in RETRYABLE} == {"quarantined"}
    assert Reason.TRUNCATED_IMAGE.disposition == "quarantined"


def test_what_was_judged_is_rejected():
    assert Reason.DUPLICATE.disposition == Reason.CHECK_FAILED.disposition == "rejected"


def test_an_error_says_reason_and_evidence():
    assert str(RowError(Reason.WRONG_TYPE, "a list")) == "wrong_type: a list"


def test_the_row_is_kept_whole_as_json():
    made = reject(Reason.WRONG_TYPE, "", stage="samples", row={"b": 1, "a": ["é", None]})
    assert json.loads(made.row) == {"a": ["é", None], "b": 1}


def test_what_json_cannot_hold_is_kept_as_text():
    made = reject(Reason.WRONG_TYPE, "", stage="samples", row={"when": object})
    assert "object" in json.loads(made.row)["when"]


def test_a_lone_surrogate_does_not_keep_a_reject_out_of_its_table():
    made = reject(Reason.WRONG_TYPE, "\ud800", stage="samples", row={"a": "\udfff"}, source_row="\udc80.jsonl:1")
    assert from_table(Reject, to_table(Reject, [made])) == [made]
    assert (made.evidence, made.source_row) == ("?", "?.jsonl:1")


def test_rejected_are_exactly_the_rows_that_were_judged():
    """The others may pass once their cause is mended."""
    quarantined = {reason.value for reason in Reason if reason.disposition == "quarantined"}
    assert quarantined == {
        *("malformed_row", "wrong_type", "missing_image", "empty_image", "unreadable_image", "truncated_image"),
        *("animated_image", "missing_video", "unreadable_video", "too_large_video", "too_large_image"),
        *("box_outside_image", "material_missing", "policy_failed", "sandbox_failed", "stale", "label_disputed"),
        *("no_vote", "waiting", "broken_submission", "foreign_frame", "stage_failed"),
    }
    assert [reason for reason in Reason if reason.disposition == "not_applicable"] == [Reason.NOT_APPLICABLE]


@pytest.mark.parametrize(
    ("reason", "stored", "disposition", "is_applicable"),
    [
        ("not_applicable", "rejected", "not_applicable", False),
        ("not_applicable", "not_applicable", "not_applicable", False),
        ("duplicate", "rejected", "rejected", True),
        ("stale", "quarantined", "quarantined", True),
    ],
)
def test_a_row_that_is_not_for_a_family_is_no_reject_however_it_was_stored(reason, stored, disposition, is_applicable):
    kept = Reject(stage="run", reason=reason, disposition=stored, evidence="", row="{}")
    assert (kept.disposition, kept.is_applicable) == (disposition, is_applicable)


@pytest.mark.parametrize(
    ("facts", "upgraded"),
    [
        ({"n": 3}, {"n": 3}),
        ({"n_rejected": 5}, {"n_rejected": 5, "n_not_applicable": 0}),
        (
            {"n_rejected": 5, "reasons": {"not_applicable": 2, "stale": 1}},
            {"n_rejected": 3, "n_not_applicable": 2, "reasons": {"not_applicable": 2, "stale": 1}},
        ),
        (
            {"n_rejected": 5, "n_not_applicable": 1, "reasons": {"not_applicable": 1}},
            {"n_rejected": 5, "n_not_applicable": 1, "reasons": {"not_applicable": 1}},
        ),
    ],
)
def test_counts_of_an_earlier_version_are_read_with_inapplicable_rows_apart(facts, upgraded):
    assert upgraded_counts(facts) == upgraded


def test_a_reject_keeps_letters_as_they_are_its_keys_in_order_and_what_else_is_known():
    made = reject(Reason.STALE, "é\ud800", stage="run", row={"b": "é", "a": 1}, family="crop", check="executes")
    assert (made.row, made.evidence) == ('{"a": 1, "b": "é"}', "é?")
    assert (made.family, made.check, made.source, made.source_row) == ("crop", "executes", "", "")
    assert (made.reason, made.disposition, made.stage) == ("stale", "quarantined", "run")
    assert made.row not in repr(made)


def test_a_stage_is_run_again_only_for_what_lies_outside_of_its_rows():
    assert {Reason.POLICY_FAILED, Reason.SANDBOX_FAILED} == RETRYABLE
