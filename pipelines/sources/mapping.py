"""Somebody's row by a column mapping: what a sample needs, or a typed ``BadRow`` that says which column held what.

columns = Columns(images="image", question="q", answer="gt", boxes="bbox", box_frame="xywh")
map_row({"image": "street.jpg", …}, columns, where="train/7", folder=Path("streets"), license="CC0-1.0")
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.records import Truth
from pipelines.rejects import Reason, RowFault
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.boxes import boxes_of
from pipelines.sources.columns import BESIDE, Columns, first_named, value_at
from pipelines.sources.json_texts import list_in, object_in
from pipelines.sources.media import IMAGE, VIDEO, describe, json_beside, media
from pipelines.sources.options import LETTERS, from_letters, lettered, plain_label, split_question
from pipelines.sources.texts import answer_of, question_of, text_at

_DEEPEST = 16


def map_row(row: Mapping[str, Any], columns: Columns, *, where: str, folder: Path, license: str) -> SourceRow | BadRow:
    """One row by ``columns``. ``where`` names it for a person; relative image paths are below ``folder``."""
    try:
        if columns.json_beside:
            row = {**row, BESIDE: json_beside(row, columns.images, folder, prefix=columns.path_prefix)}
        _refuse_excluded(row, columns)
        images = tuple(media(row, columns.images, folder, IMAGE, prefix=columns.path_prefix))
        question, choices = _question_and_choices(row, columns)
        return SourceRow(
            row=where,
            images=images,
            question=question,
            answer=_answer(row, columns, choices),
            choices=choices,
            truth=Truth(boxes=tuple(boxes_of(row, columns, images)), details=_details(row, columns)),
            category=_optional_text(row, columns.category),
            license=_optional_text(row, columns.license) or license,
            videos=tuple(media(row, columns.videos, folder, VIDEO, prefix=columns.path_prefix)),
        )
    except RowFault as fault:
        return BadRow(where, fault.reason, fault.evidence, _short(row))


def _refuse_excluded(row: Mapping[str, Any], columns: Columns) -> None:
    for name, values in columns.exclude.items():
        value = value_at(row, name)
        if any(type(value) is type(excluded) and value == excluded for excluded in values):
            raise RowFault(Reason.EXCLUDED, f"column {name!r} is {value!r}, which the source leaves out")


def _optional_text(row: Mapping[str, Any], column: str | None) -> str:
    return text_at(row, column) if column and value_at(row, column) not in (None, "") else ""


def _question_and_choices(row: Mapping[str, Any], columns: Columns) -> tuple[str, tuple[str, ...]]:
    """Choices of a column count before those in the question; both cannot stay, or they would be asked twice."""
    question, choices = question_of(row, columns), _choices(row, columns)
    if not columns.choices_in_question:
        return question, choices
    stem, found = split_question(question)
    return (stem if found and len(choices) in (0, len(found)) else question), choices or found


def _choices(row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    if isinstance(columns.choices, tuple):
        return lettered([text_at(row, name) for name in columns.choices if value_at(row, name) not in (None, "")])
    given = value_at(row, columns.choices) if columns.choices else None
    if given is None or given == "":
        return ()
    letters, texts = object_in(given), list_in(given)
    given_texts = [*letters.values()] if letters is not None else texts
    if given_texts is None or not all(isinstance(text, str) or (letters and text is None) for text in given_texts):
        raise RowFault(
            Reason.WRONG_TYPE, f"column {columns.choices!r}: expected a list of texts, found {describe(given)}"
        )
    try:
        return lettered(given_texts) if letters is None else from_letters(letters)
    except RowFault as fault:
        raise RowFault(fault.reason, f"column {columns.choices!r}: {fault.evidence}") from fault


def _answer(row: Mapping[str, Any], columns: Columns, choices: tuple[str, ...]) -> str:
    """The answer; where a row has choices, a number is an index into them and becomes its letter."""
    name = first_named(row, columns.answer)
    value = value_at(row, name)
    if choices and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < len(choices):
            raise RowFault(Reason.MALFORMED_ROW, f"column {name!r}: choice {value} of {len(choices)}")
        return LETTERS[value]
    answer = answer_of(row, columns)
    return _named(answer, choices) if choices else answer


def _named(answer: str, choices: tuple[str, ...]) -> str:
    """The answer as it is if it is a choice's text, which may look like a letter; else its letter as we write it."""
    return answer if any(choice[3:] == answer for choice in choices) else plain_label(answer)


def _details(row: Mapping[str, Any], columns: Columns) -> str | None:
    if not columns.details:
        return None
    return json.dumps({name: _short(value_at(row, name)) for name in columns.details}, sort_keys=True, default=str)


def _short(value: Any, depth: int = 0) -> Any:
    """A row for a person: bytes become their number, what is nested beyond reading is left out."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping | list | tuple) and depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {name: _short(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_short(inner, depth + 1) for inner in value]
    return value
