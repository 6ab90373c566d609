"""Reasons, and rows on their way into the table of rejects."""

from __future__ import annotations

import json

from darkroom.pipelines.records import Reject
from darkroom.pipelines.records.reject_reasons import RETRYABLE, Reason, RowError, reject
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
