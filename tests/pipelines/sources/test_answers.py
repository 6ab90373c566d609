"""Answers that can mean two things: lists of people's answers, lists as text, missing values; never taken silently."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.sources import BadRow
from darkroom.pipelines.sources.answers import EQUALLY_FREQUENT, MOST_FREQUENT
from darkroom.pipelines.sources.columns import Columns, list_in
from darkroom.pipelines.sources.ingest import ingest_shard
from tests.pipelines.sources.given_rows import GivenRows

MAJORITY = Columns(answer_list="majority")
TEN = ["blue", *["red"] * 5, *["Red"] * 4]
VQA = [{"answer": "red", "answer_confidence": "yes"}, {"answer": "maroon", "answer_confidence": "no"}]


@pytest.mark.parametrize(
    ("printed", "values"),
    [
        ("['red' 'dark red']", ["red", "dark red"]),
        ("['a red square' \"it's blue\"\n 'green']", ["a red square", "it's blue", "green"]),
        ("array(['red', 'blue'], dtype=object)", ["red", "blue"]),
        ("array(['red' 'blue'], dtype='<U4')", ["red", "blue"]),
        ("[{'answer': 'red'} {'answer': 'blue'}]", [{"answer": "red"}, {"answer": "blue"}]),
        ("['red' nan]", ["red", None]),
        ("[1 2\n 3]", [1, 2, 3]),
        ("['red', 'blue']", ["red", "blue"]),
        ("['it''s']", ["its"]),
    ],
)
def test_a_list_is_read_as_numpy_and_pandas_print_it(printed, values):
    assert list_in(printed) == values


@pytest.mark.parametrize("text", ["['red' 'blue", "['" + "\\'" * 50_000, "[" + "'a' " * 50_000, "[x y]"])
def test_a_list_that_is_cut_off_is_a_text(text):
    assert list_in(text) is None


@pytest.mark.parametrize(
    ("value", "answer", "accepted", "votes"),
    [
        ([*["red"] * 6, *["maroon"] * 2, *["blue"] * 1], "red", ["maroon"], [6, 9]),
        ("['red' 'dark red' 'crimson']", "red", ["dark red", "crimson"], [1, 3]),
        (VQA, "red", ["maroon"], [1, 2]),
        (["nan", "red", None, "red", "None", "blue"], "red", ["blue"], [2, 3]),
    ],
)
def test_the_most_frequent_answer_is_the_label_and_what_a_third_as_many_gave_is_accepted(
    mapped, value, answer, accepted, votes
):
    row = mapped(MAJORITY, answer=value)
    assert row.answer == answer
    assert json.loads(row.truth.details) == {"accepted_answers": accepted, "answer_votes": votes}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (TEN, MOST_FREQUENT),
        (["red", "Red", "RED"], ""),
        (["blue", "red", "red", "blue"], EQUALLY_FREQUENT),
        ([f"{n} cups" for n in range(10)], EQUALLY_FREQUENT),
    ],
)
def test_a_choice_among_answers_is_counted_at_intake(mapped, store, value, choice):
    row = mapped(MAJORITY, answer=value)
    assert row.label_choice == choice
    notes = ingest_shard(GivenRows(row), 0, store).notes
    assert [note for note in notes if "labelled" in note.what] == ([(1, choice, row.row)] if choice else [])


def test_a_choice_among_answers_that_names_one_of_the_choices_is_counted(mapped):
    row = mapped(Columns(answer_list="majority", choices="choices"), answer=TEN, choices=["blue", "red"])
    assert (row.answer, row.label_choice) == ("red", MOST_FREQUENT)


def test_what_one_of_ten_people_said_is_not_accepted(mapped):
    row = mapped(MAJORITY, answer=TEN)
    assert (row.answer, row.truth.details) == ("red", None)


def test_counts_are_answers_too(mapped, refused):
    assert mapped(MAJORITY, answer=[0, 0, 3, None]).answer == "0"
    assert refused(MAJORITY, answer=[None]).reason is Reason.WRONG_TYPE


@pytest.mark.parametrize("value", ["red", ["red"], ["red", "RED"], r"['red']"])
def test_one_answer_leaves_the_sample_as_it_was(mapped, value):
    row = mapped(MAJORITY, answer=value)
    assert (row.answer, row.truth.details) == ("red", None)


def test_other_answers_of_a_row_stand_beside_its_details(mapped, store):
    row = mapped(Columns(answer_list="majority", details=("id",)), answer=[*TEN, "blue", "blue"], id=7)
    assert json.loads(row.truth.details)["id"] == 7
    (sample,) = ingest_shard(GivenRows(row), 0, store).samples
    assert right_answers(sample) == ("red", "blue")


@pytest.mark.parametrize("value", [["red"], "['red' 'blue']", '["red"]', VQA])
def test_a_list_is_refused_with_the_settings_that_read_it(refused, value):
    row = refused(answer=value)
    assert row.reason is Reason.WRONG_TYPE
    assert "`answer_list: majority`" in row.evidence


@pytest.mark.parametrize("value", ["[0, 1]", "[]", "[x, y]"])
def test_an_interval_is_an_answer(mapped, value):
    assert mapped(answer=value).answer == mapped(MAJORITY, answer=value).answer == value


def test_a_text_that_looks_like_a_list_may_be_the_answer(mapped, refused):
    columns = Columns(answer_list="text")
    assert mapped(columns, answer="['red']").answer == "['red']"
    assert refused(columns, answer=["red"]).reason is Reason.WRONG_TYPE


MISSING = [
    *("nan", "NaN", "None", "null", "N/A", "<NA>", " none ", "<image>", "<image 1>", "\u200b", "1e400"),
    *("It seems like your message is empty.", "I'm sorry, but I can't assist with that.", "As an AI language model, I"),
]


@pytest.mark.parametrize("value", MISSING)
def test_a_missing_value_is_no_answer(refused, value):
    row = refused(answer=value)
    assert row.reason is Reason.MALFORMED_ROW
    assert "column 'answer': the answer " in row.evidence


@pytest.mark.parametrize("value", ["none of them", "Nancy", "sorry", "It seems to be red", "nil-nil", "1e40", "NA"])
def test_words_that_begin_like_missing_values_are_answers(mapped, value):
    assert mapped(answer=value).answer == value


def test_a_missing_value_may_be_meant(mapped):
    assert mapped(Columns(missing_values=()), answer="None").answer == "None"
    assert isinstance(mapped(Columns(missing_values=("unknown",)), answer="Unknown"), BadRow)
    assert mapped(answer="None", category="OCR").answer == "None"
    assert mapped(choices=["None", "One"], answer="None").answer == "None"
