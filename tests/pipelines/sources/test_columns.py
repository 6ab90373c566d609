"""Lists and objects that tables keep as text: JSON, or as Python prints them; everything else is text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.sources.columns import Columns, list_in, missing_columns, object_in

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(values, max_size=4))
def test_a_list_is_read_as_json_and_as_python_prints_it(value):
    assert list_in(value) == list_in(json.dumps(value)) == list_in(f" {value!r}\n") == value


@given(st.dictionaries(st.text(max_size=4), values, max_size=4))
def test_an_object_is_read_as_json_and_as_python_prints_it(value):
    assert object_in(value) == object_in(json.dumps(value)) == object_in(repr(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[1",
        "[x]",
        "[1]+[2]",
        "[1]; [2]",
        "[open('a')]",
        "{[]: 1}",
        "{1}",
        "[" * 5000,
        "[1is 1]",
        "[1]\0",
        "x",
        "",
        7,
        None,
    ],
)
def test_anything_else_is_no_structure(text):
    assert list_in(text) is None
    assert object_in(text) is None


@given(st.text(alphabet="[]{}(),:'\"\\ab1.-\n", max_size=30))
def test_no_text_does_harm(text):
    assert isinstance(list_in(text), list | None)
    assert object_in(text) is None or isinstance(object_in(text), dict)


def test_a_misspelt_column_names_the_one_that_is_near():
    missing = missing_columns(Columns(question="qestion", answer="ground"), ["image", "question", "label"])
    assert missing == "'qestion', 'ground'; it has 'image', 'question', 'label' (did you mean 'question'?)"
