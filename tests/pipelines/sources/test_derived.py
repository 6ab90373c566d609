"""Columns that rows do not have: constants, and texts for the values of another column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.mapping import map_row
from darkroom.pipelines.sources.source_config import SourceConfig

ROW = {"question": "How many?", "answer": "6", "task": "chart", "extra": {"n": 3}}
CATEGORY = {"column": "task", "map": {"chart": "OCR", 3: "math", True: "yes"}}


def mapped(fields: dict[str, Any], row: dict[str, Any] = ROW) -> SourceRow | BadRow:
    columns = Columns.model_validate({"images": None, **fields})
    (made,) = map_row(row, columns, where="q:1", folder=Path(), license="")
    return made


@pytest.mark.parametrize(
    ("rule", "category"),
    [
        ({"value": "OCR"}, "OCR"),
        (CATEGORY, "OCR"),
        ({"column": "task", "map": {"plot": "OCR"}, "default": "object"}, "object"),
        ({**CATEGORY, "column": "extra.n"}, "math"),
        ("task", "chart"),
    ],
)
def test_a_category_is_derived(rule: Any, category: str) -> None:
    row = mapped({"category": rule})
    assert isinstance(row, SourceRow)
    assert (row.category, row.question, row.answer) == (category, "How many?", "6")


def test_question_answer_and_licence_may_be_constants_and_the_unread_columns_are_named() -> None:
    row = mapped({"question": {"value": "What is it?"}, "license": {"value": "MIT"}, "category": CATEGORY})
    assert isinstance(row, SourceRow)
    assert (row.question, row.license, row.unread) == ("What is it?", "MIT", ("column question", "column extra"))


def test_a_value_that_the_map_lacks_is_rejected_with_those_it_has() -> None:
    row = mapped({"category": CATEGORY}, {**ROW, "task": "plot"})
    assert isinstance(row, BadRow)
    assert row.evidence == "column 'task' is 'plot', which `map` lacks (chart, 3, True): name it or `default`"


@pytest.mark.parametrize(
    "rule", [{}, {"value": "x", "column": "y"}, {"column": "y"}, {"vlaue": "x"}, {"value": "x", "map": {"a": "b"}}]
)
def test_a_rule_that_is_neither_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Columns.model_validate({"category": rule})


def test_only_texts_are_derived() -> None:
    with pytest.raises(ValidationError):
        Columns.model_validate({"images": {"value": "a.jpg"}})


def test_the_needed_columns_are_those_of_the_rules() -> None:
    columns = Columns.model_validate({"images": None, "question": {"value": "?"}, "category": CATEGORY})
    assert columns.needed() == [("answer",), ("task",)]


def test_a_file_keeps_the_rules_in_their_fields(tmp_path: Path) -> None:
    columns = Columns.model_validate({"category": CATEGORY, "license": {"value": "MIT"}})
    config = SourceConfig(kind="jsonl", path="/data", columns=columns)
    path = Catalog(tmp_path).add("charts", config)
    written = yaml.safe_load(path.read_text(encoding="utf-8"))["columns"]
    assert written == {
        "category": {"column": "task", "map": {"chart": "OCR", "3": "math", "True": "yes"}},
        "license": {"value": "MIT"},
    }
    assert Catalog(tmp_path).configs()["charts"] == config
