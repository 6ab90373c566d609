"""Somebody's row becomes what a sample needs, or a bad row that says which column held what."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.mapping import map_row
from tests.matrices import fewer_quickly


@pytest.mark.parametrize("column", ["question", "answer"])
@pytest.mark.parametrize("value", [None, ..., [], ["a"], {}, True, False])
def test_a_text_of_another_type_names_its_column(refused, column, value):
    row = refused(**{column: value})
    assert row.reason is Reason.WRONG_TYPE
    assert row.evidence.startswith(f"column {column!r}: expected text, found ")


@pytest.mark.parametrize(("value", "text"), [(7, "7"), (2.5, "2.5"), (" x\n", "x")])
def test_a_number_is_a_text(mapped, value, text):
    row = mapped(question=value, answer=value)
    assert (row.question, row.answer) == (text, text)


def test_a_category_may_be_absent(mapped, refused):
    assert mapped().category == mapped(category=None).category == ""
    assert mapped(category="OCR").category == "OCR"
    assert refused(category=["OCR"]).reason is Reason.WRONG_TYPE


def test_a_bad_row_shows_what_there_was(refused):
    row = refused(question=None, image=b"12345", extra={"when": date(2026, 1, 2), "deep": [{"data": b"12"}]})
    assert row.content["image"] == "5 bytes"
    assert row.content["extra"]["deep"] == [{"data": "2 bytes"}]
    assert "2026-01-02" in reject(row.reason, row.evidence, stage="samples", row=row.content).row


def test_nesting_beyond_reading_is_left_out(refused):
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    row = refused(question=None, extra=nested)
    assert "…" in reject(row.reason, row.evidence, stage="samples", row=row.content).row


def test_a_column_that_a_mapping_cannot_have_is_an_error():
    with pytest.raises(ValidationError, match="image"):
        Columns(image="image")  # type: ignore[call-arg]


def test_every_named_column_must_be_there():
    assert Columns(images=None, row_id="id", question=("q", "chat")).needed() == [("q", "chat"), ("answer",), ("id",)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("sign.png") | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["bytes", "path", "box", "label"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.hypothesis
def test_any_row_is_a_row_or_a_bad_row(folder):
    frames = st.sampled_from(["corners", "xywh", "fractions", "percent"])
    names = st.sampled_from(["image", "question", "answer", "choices", "boxes", "category"])

    @given(st.dictionaries(names, JSON), frames)
    @settings(max_examples=fewer_quickly(300))
    def check(row: dict[str, object], frame: str) -> None:
        columns = Columns(choices="choices", boxes="boxes", category="category", box_frame=frame)  # type: ignore[arg-type]
        (mapped,) = map_row(row, columns, where="1", folder=folder, license="")
        if isinstance(mapped, BadRow):
            assert reject(mapped.reason, mapped.evidence, stage="samples", row=mapped.content).row

    check()


# --- what public datasets have

NESTED = {"meta": {"image": "sign.png", "asks": {"q": "Which colour?"}}, "gt": '{"answer": "red"}'}


def test_names_go_into_structures_and_into_json_in_texts(folder):
    columns = Columns(images="meta.image", question="meta.asks.q", answer="gt.answer")
    (row,) = map_row(NESTED, columns, where="1", folder=folder, license="")
    assert isinstance(row, SourceRow)
    assert (row.question, row.answer, len(row.images)) == ("Which colour?", "red", 1)


def test_a_name_with_a_dot_in_it_is_a_name(mapped):
    assert mapped(Columns(question="q.1"), **{"q.1": "Why?"}).question == "Why?"


@pytest.mark.parametrize("name", ["meta.none", "gt.none", "meta.image.deeper", "none.q"])
def test_what_is_not_inside_a_structure_is_nothing(folder, name):
    columns = Columns(images="meta.image", question=name, answer="gt.answer")
    (row,) = map_row(NESTED, columns, where="1", folder=folder, license="")
    assert isinstance(row, BadRow)
    assert row.evidence == f"column {name!r}: expected text, found nothing"


@pytest.mark.parametrize(
    ("value", "is_excluded"), [("okvqa", True), ("OKVQA", False), (1, True), (True, False), ("1", False), (None, False)]
)
def test_rows_with_excluded_values_are_set_aside_with_the_value(mapped, value, is_excluded):
    columns = Columns(exclude={"data_source": ("okvqa", 1)})
    row = mapped(columns, data_source=value)
    assert isinstance(row, BadRow) is is_excluded
    if isinstance(row, BadRow):
        assert (row.reason, row.evidence) == (
            Reason.EXCLUDED,
            f"column 'data_source' is {value!r}, which the source leaves out",
        )


def test_an_excluded_column_must_be_there():
    assert ("data_source",) in Columns(exclude={"data_source": ("okvqa",)}).needed()


def test_a_row_s_licence_counts_before_its_source_s(mapped):
    columns = Columns(license="rights")
    assert mapped(columns, rights="MIT").license == "MIT"
    assert mapped(columns, rights=None).license == mapped(columns, rights="").license == "CC0-1.0"


def test_details_are_kept_as_private_knowledge(mapped):
    assert mapped().truth.details is None
    assert mapped(Columns(details=("votes", "image")), votes=[1, 0], image=[b"123"]).truth.details == (
        '{"image": ["3 bytes"], "votes": [1, 0]}'
    )


@pytest.mark.hypothesis
def test_any_row_is_a_row_or_a_bad_row_with_every_field_of_a_mapping(folder):
    everything = Columns(
        question=("question", "chat.q"),
        choices="choices",
        boxes="boxes",
        category="category",
        license="rights",
        details=("extra",),
        exclude={"category": ("x",)},
        drop_lines=("Think",),
        choices_in_question=True,
        unwrap_answer=True,
        answer_list="first",
    )
    values = JSON | st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "x"]), "content": JSON}), max_size=2
    )
    texts = st.sampled_from(["A. x\nB. y", "[", "['a']", '{"a": [', "<answer>", "\\boxed{", "$", "<image>"])

    @given(
        st.dictionaries(
            st.sampled_from(["image", "question", "chat", "answer", "choices", "boxes", "category", "rights", "extra"]),
            values | texts,
        )
    )
    @settings(max_examples=fewer_quickly(300))
    def check(row: dict[str, object]) -> None:
        (mapped,) = map_row(row, everything, where="1", folder=folder, license="")
        if isinstance(mapped, BadRow):
            assert reject(mapped.reason, mapped.evidence, stage="samples", row=mapped.content).row

    check()


@pytest.mark.parametrize("column", ["question", "answer"])
def test_a_text_of_many_megabytes_is_rejected_before_it_is_looked_through(refused, column):
    row = refused(**{column: "<image>" * 3_000_000})
    assert (row.reason, row.evidence) == (
        Reason.MALFORMED_ROW,
        f"column {column!r}: a text of 21,000,000 characters: cut it",
    )
