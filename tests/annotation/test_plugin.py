"""The plug-in's pure parts; the rest is tested inside of Label Studio (tests/e2e/annotation)."""

from __future__ import annotations

import re
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.annotation._plugin.darkroom_studio.content import FIELDS, find_errors
from darkroom.annotation._plugin.darkroom_studio.validation import find_submission_errors, read_body
from darkroom.annotation.queues.base import GATES
from darkroom.annotation.rounds.campaign import Terms
from darkroom.annotation.rounds.submissions import read_submission
from darkroom.pipelines.records.reject_reasons import RowError
from tests.annotation.desk import ANN, SIZE, accepts, box, choice, fixes, number, record, rejects, text
from tests.matrices import fewer_quickly

GATE = {"kind": "annotate", "max_share": 0.05}
NO_BOX = "Draw at least one box around the target object."


def test_a_good_record_passes() -> None:
    assert find_errors(record(), GATE) == []


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (record()[1:], NO_BOX),
        ([box(width=30, height=30), *record()[1:]], "Box 1 covers 9.00 % of the image; the limit is 5 %."),
        ([box(width=30, height=30), *record()], "Box 1 covers 9.00 % of the image; the limit is 5 %."),
        ([box(value={"rotation": 12}), *record()[1:]], "Box 1 is rotated; boxes must be upright."),
        ([box(width=0), *record()[1:]], "Box 1 is empty."),
        ([box(value={"width": None}), *record()[1:]], "Box 1 has no size: its width is None."),
        (record(answer=" \u200b\n"), "The answer is empty."),
        (record(question=""), "The question is empty."),
        ([*record()[:1], *record()[2:]], "Choose a category."),
        (record(category="quantity"), "The count is missing: enter how many objects there are."),
    ],
)
def test_what_breaks_the_rules_is_said_in_sentences(result: list, said: str) -> None:
    assert find_errors(result, GATE) == [said]


def test_a_limit_below_a_percent_is_said_as_it_is() -> None:
    assert find_errors(record(), GATE | {"max_share": 0.0005}) == [
        "Box 1 covers 0.12 % of the image; the limit is 0.05 %."
    ]


def test_exactly_the_limit_passes() -> None:
    assert find_errors([box(width=25, height=20), *record()[1:]], GATE) == []


@pytest.mark.parametrize("kind", ["cross_check", "accept"])
def test_a_rejection_needs_no_box_but_reasons_and_a_fix_needs_a_record(kind: str) -> None:
    gate = GATE | {"kind": kind}
    own = [text("blind_answer", "42")]
    assert find_errors([*own, choice("verdict", "reject"), choice("reason", "bad_box")], gate) == []
    assert find_errors([*own, choice("verdict", "reject")], gate) == [
        "Say why you reject it: choose at least one reason."
    ]
    assert find_errors([*own, choice("verdict", "fix"), *record()[1:]], gate) == [NO_BOX]
    assert find_errors([*own, choice("verdict", "accept")], gate) == [], "of a task of an older version"
    assert find_errors([*own, choice("verdict", "accept")], gate | {"accept_needs_box": True}) == [NO_BOX]
    assert find_errors(own, gate) == ["Choose a verdict: accept, fix, reject."]


def test_a_checker_answers_first() -> None:
    said = find_errors([choice("verdict", "accept"), box()], GATE | {"kind": "cross_check"})
    assert said == ["Your own answer is missing: answer the question before you judge the record."]


@pytest.mark.parametrize("gate", [{}, {"kind": "review"}, {"kind": "another team's"}])
def test_other_tasks_are_left_alone(gate: dict) -> None:
    assert find_errors([box(width=90, height=90)], gate) == []


def test_an_empty_verdict_of_a_queue_is_refused() -> None:
    gate = GATES["review"]
    assert find_errors([], gate) == ["Choose one: accept, reject."]
    assert find_errors([choice("verdict", "reject")], gate) == ["Say why you reject it: choose at least one reason."]
    assert find_errors([choice("verdict", "accept")], gate) == []


SKIP = {"was_cancelled": True}


@pytest.mark.parametrize(
    ("method", "body", "query", "is_open"),
    [
        ("POST", {"result": record()}, {}, True),
        ("POST", {"result": []}, {}, False),
        ("POST", {}, {}, False),
        ("POST", {"result": "x"}, {}, False),
        ("POST", [], {}, False),
        ("POST", {"result": [], **SKIP}, {}, True),
        ("POST", {"result": []}, {"was_cancelled": "1"}, True),
        ("POST", {"result": [], **SKIP}, {"was_cancelled": "0"}, False),
        ("PATCH", {"result": []}, {"was_cancelled": "1"}, False),
        ("PATCH", {"lead_time": 3}, {}, True),
        ("PATCH", {"was_cancelled": False}, {}, False),
        ("PATCH", {"result": record(), "was_cancelled": False}, {}, True),
        ("PUT", {"lead_time": 3}, {}, False),
    ],
)
def test_no_request_stores_an_empty_submission(method: str, body: Any, query: dict, is_open: bool) -> None:
    """A skip may be empty; the edit that would turn it into a submission may not."""
    assert (not find_submission_errors(body, GATE, method=method, query=query, stored=[])) == is_open


def test_a_number_beyond_a_float_is_refused() -> None:
    """Label Studio would store it, and fail with 500 whenever the task is listed again: no sync would ever end."""
    assert read_body(b'{"result": [1.5, 1e300]}', None) == {"result": [1.5, 1e300]}
    for score in ("1e999", "-1e999", "NaN", "Infinity"):
        with pytest.raises(ValueError, match="not a finite number"):
            read_body(f'{{"score": {score}}}'.encode(), None)
    assert read_body(b"", None) == {}


def test_what_other_parsers_read_differently_is_refused() -> None:
    with pytest.raises(ValueError, match="too many brackets"):
        read_body(b"[" * 100_000 + b"]" * 100_000, None)
    for encoding in ("latin-1", "utf-7", "utf-16", "hex"):
        with pytest.raises(ValueError, match="not in UTF-8"):
            read_body(b"{}", encoding)
    assert read_body('{"text": "é"}'.encode(), "UTF-8") == {"text": "é"}


KEYS = st.sampled_from(["text", "choices", "number", "x", "y", "width", "height", "rotation", "nonsense"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 60),
    st.floats(),
    st.sampled_from(
        [10**400, "", " ", "42", "ocr", "quantity", "accept", "fix", "reject", "bad_box", "\ud800", "\u200b"]
    ),
    st.text(max_size=3),
)
VALUES = st.dictionaries(KEYS, LEAVES | st.lists(LEAVES, max_size=2), max_size=3)
NEAR = [record()[0], *record(), *record(category="quantity"), number("count", 42), number("count", 1.5)]
NEAR += [choice("verdict", verdict) for verdict in ("accept", "fix", "reject")]
NEAR += [text("blind_answer", "42"), choice("reason", "bad_box"), choice("reason", "because"), text("comment", "hm")]
NEAR += [box(width=40, height=40), box(original_width=3000), box(image_rotation=90), {"type": "relation"}]
ENTRIES = st.one_of(
    st.sampled_from(NEAR),
    st.fixed_dictionaries({"from_name": st.sampled_from([*FIELDS, "x", [], None]), "value": VALUES}),
    st.builds(lambda near, value: near | {"value": near.get("value", {}) | value}, st.sampled_from(NEAR), VALUES),
    LEAVES,
)
STARTS = [[], record(), [*record(category="quantity"), number("count", 42)], accepts(), rejects(), fixes()]


@settings(max_examples=fewer_quickly(500), deadline=None)
@given(
    st.sampled_from(["annotate", "rework", "cross_check", "accept"]),
    st.builds(lambda start, more: start + more, st.sampled_from(STARTS), st.lists(ENTRIES, max_size=4)) | LEAVES,
    st.randoms(use_true_random=False),
)
def test_the_gate_accepts_exactly_what_the_sync_accepts(round: str, results: Any, random: Random) -> None:
    """Over whatever JSON people send; neither of the two raises anything else than its refusal."""
    if isinstance(results, list):
        results = random.sample(results, random.randint(max(0, len(results) - 2), len(results)))
    terms = Terms(0.05, 2, form=random.choice(["", "today's"]), reasons=("bad_box", "ambiguous"))
    gate = terms.gate(round, SIZE)
    errors = find_errors(results, gate)
    expected = pytest.raises(RowError, match=re.escape(" ".join(errors))) if errors else nullcontext()
    with expected:
        read_submission({"id": 1, "completed_by": ANN, "result": results}, gate)
