"""Dataclasses and Arrow schemas say the same, and a record comes back from a table as it went in."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

import cattrs
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.records import (
    Check,
    Draft,
    Grader,
    ImageRef,
    Observation,
    Reject,
    Sample,
    Trajectory,
    Usage,
    VideoRef,
    Votes,
    from_row,
    to_row,
)
from darkroom.pipelines.records.schemas import arrow_type, from_table, schema_of, to_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotation that a table can hold."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{field.name: values(hints[field.name]) for field in dataclasses.fields(kind)})
    if typing.get_origin(kind) is tuple:
        return st.lists(values(typing.get_args(kind)[0]), max_size=2).map(tuple)
    if typing.get_origin(kind) is typing.Literal:
        return st.sampled_from(typing.get_args(kind))
    if isinstance(kind, types.UnionType):
        return st.one_of(st.none(), *(values(part) for part in typing.get_args(kind) if part is not type(None)))
    return {str: TEXT, int: INTS, float: FLOATS, bool: st.booleans()}[kind]


def test_a_schema_has_the_fields_of_the_dataclass_at_every_depth():
    assert arrow_type(Observation) == pa.struct(
        [
            ("status", pa.string()),
            ("text", pa.string()),
            ("images", pa.list_(pa.struct(list(schema_of(ImageRef))))),
            ("error", pa.string()),
            ("edits", pa.list_(pa.struct([(name, pa.string()) for name in ("kind", "before", "after")]))),
        ]
    )
    assert schema_of(Votes).field("ballots").type == pa.list_(pa.bool_())
    assert schema_of(Usage).types == [pa.int64()] * 3 + [pa.float64()]


@pytest.mark.parametrize("kind", [dict[str, int], tuple[int, str], int | str, Any])
def test_what_no_column_holds_is_an_error(kind):
    with pytest.raises(TypeError, match="no column holds"):
        arrow_type(kind)


@pytest.mark.parametrize("kind", [Sample, Draft, Trajectory, Reject], ids=lambda kind: kind.__name__)
def test_records_come_back_from_a_table_as_they_went_in(kind):
    @given(st.lists(values(kind), max_size=2))
    @settings(max_examples=15)
    def check(records: list[Any]) -> None:
        assert from_table(kind, to_table(kind, records)) == records

    check()


def test_a_field_that_a_record_does_not_have_is_an_error():
    with pytest.raises(cattrs.BaseValidationError):
        from_row(Usage, {"calls": 1, "tokens": 3})


def test_a_field_that_a_row_lacks_is_an_error():
    with pytest.raises(cattrs.BaseValidationError):
        from_row(Check, {"name": "executes"})


def test_a_value_outside_its_literal_is_an_error(make_case):
    row = to_table(Trajectory, [make_case().trajectory]).to_pylist()[0]
    with pytest.raises(cattrs.BaseValidationError):
        from_row(Trajectory, row | {"loss_policy": "first_round"})


def test_a_trajectory_that_was_not_checked_has_not_passed(make_case):
    trajectory = make_case().trajectory
    assert not trajectory.passed
    assert dataclasses.replace(trajectory, checks=(Check("a", True),)).passed
    assert not dataclasses.replace(trajectory, checks=(Check("a", True), Check("b", False))).passed


def test_shown_images_come_in_the_order_of_their_appearance(make_case):
    trajectory = make_case().trajectory
    assert trajectory.shown_images == (*trajectory.images, *trajectory.rounds[0].observation.images)


def test_usage_adds_up():
    assert Usage(1, 2, 3, 0.5) + Usage(1, 1, 1, 0.25) == Usage(2, 3, 4, 0.75)


def test_a_field_that_may_be_missing_is_a_column_of_its_other_kind():
    assert arrow_type(int | None) == arrow_type(None | int) == pa.int64()
    assert arrow_type(tuple[str, ...] | None) == pa.list_(pa.string())


@pytest.mark.parametrize("kind", [int | str | None, tuple[int, ...] | str, list[int], tuple[int, int]])
def test_a_field_of_two_kinds_or_of_fixed_length_is_no_column(kind):
    with pytest.raises(TypeError, match="no column holds"):
        arrow_type(kind)


def test_what_a_film_or_a_grader_lacks_is_not_written():
    """Rows of earlier versions stay the same, byte for byte."""
    part = VideoRef("v", "mp4", 1, 2, 3, 4.0, parent="film", made_by="cut")
    assert to_row(part)["parent"] == "film"
    assert to_row(dataclasses.replace(part, parent=None, made_by=None)) == {
        **{"sha256": "v", "format": "mp4", "width": 1, "height": 2, "n_frames": 3, "fps": 4.0},
    }
    assert to_row(Grader("text", accepted=("red",)))["accepted"] == ["red"]
    assert "accepted" not in schema_of(Grader).names
