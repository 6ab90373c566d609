"""A column mapping: which columns of somebody's rows hold the images, videos, question, answer and boxes.

    columns = Columns(images="image", question="q", answer="gt", boxes="bbox", box_frame="xywh")

A row's value becomes what a sample needs or a typed ``BadRow`` that says which column held what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pipelines.decoding import probe
from pipelines.geometry import Box, box_from_corners, box_from_fractions, box_from_percent, box_from_xywh
from pipelines.records import Truth, TruthBox
from pipelines.rejects import Reason, RowFault
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.media import IMAGE, VIDEO, describe, media

BoxFrame = Literal["corners", "xywh", "fractions", "percent"]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DEEPEST = 16


class Columns(BaseModel):
    """Names of columns; ``None`` for what a source does not have.

    ``images`` may hold one image or a list: bytes, a ``datasets`` image struct, a path, a data URL; ``[]`` says that a
    row has none; ``videos`` likewise. A relative path stays below the folder; an absolute one is taken as it is.
    ``choices`` holds a list of texts, which may already begin with their letters. ``boxes`` holds one box or a list of
    them, in ``box_frame``, or objects with ``box`` and ``label``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    images: str | None = "image"
    question: str = "question"
    answer: str = "answer"
    choices: str | None = None
    boxes: str | None = None
    box_frame: BoxFrame = "corners"
    category: str | None = None
    row_id: str | None = None
    videos: str | None = None

    def used(self) -> list[str]:
        """The columns that must be there."""
        needed = (self.images, self.videos, self.question, self.answer)
        return [name for name in (*needed, self.choices, self.boxes, self.category, self.row_id) if name]


def map_row(row: Mapping[str, Any], columns: Columns, *, where: str, folder: Path, license: str) -> SourceRow | BadRow:
    """One row by ``columns``. ``where`` names it for a person; relative image paths are below ``folder``."""
    try:
        images = tuple(media(row, columns.images, folder, IMAGE))
        return SourceRow(
            row=where,
            images=images,
            question=_text(row, columns.question),
            answer=_answer(row, columns),
            choices=_choices(row, columns),
            truth=Truth(boxes=tuple(_boxes(row, columns, images))),
            category=_text(row, columns.category) if columns.category and row.get(columns.category) else "",
            license=license,
            videos=tuple(media(row, columns.videos, folder, VIDEO)),
        )
    except RowFault as fault:
        return BadRow(where, fault.reason, fault.evidence, _short(row))


def _text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected text, found {describe(value)}")


def _answer(row: Mapping[str, Any], columns: Columns) -> str:
    """The answer; where a row has choices, a number is an index into them and becomes its letter."""
    value, n = row.get(columns.answer), len(_choices(row, columns))
    if n and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < n:
            raise RowFault(Reason.MALFORMED_ROW, f"column {columns.answer!r}: choice {value} of {n}")
        return LETTERS[value]
    return _text(row, columns.answer)


def _choices(row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    value = row.get(columns.choices) if columns.choices else None
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(choice, str) for choice in value):
        raise RowFault(
            Reason.WRONG_TYPE, f"column {columns.choices!r}: expected a list of texts, found {describe(value)}"
        )
    if len(value) > len(LETTERS):
        raise RowFault(
            Reason.MALFORMED_ROW, f"column {columns.choices!r}: {len(value)} choices, at most {len(LETTERS)}"
        )
    lettered = all(choice.startswith(f"{letter}. ") for letter, choice in zip(LETTERS, value, strict=False))
    return tuple(choice if lettered else f"{letter}. {choice}" for letter, choice in zip(LETTERS, value, strict=False))


def _boxes(row: Mapping[str, Any], columns: Columns, images: Sequence[bytes]) -> Iterable[TruthBox]:
    value = row.get(columns.boxes) if columns.boxes else None
    if not value:
        return
    if not isinstance(value, list | tuple | Mapping):
        raise RowFault(Reason.WRONG_TYPE, f"column {columns.boxes!r}: expected boxes, found {describe(value)}")
    convert = _converter(columns.box_frame, images)
    for box in [value] if _is_box(value) or isinstance(value, Mapping) else value:
        label = (box.get("label") or "") if isinstance(box, Mapping) else ""
        corners = box.get("box") if isinstance(box, Mapping) else box
        if corners is None or not _is_box(corners):
            raise RowFault(
                Reason.WRONG_TYPE, f"column {columns.boxes!r}: expected four numbers, found {describe(corners)}"
            )
        try:
            yield TruthBox(str(label), *convert(corners))
        except ValueError as fault:
            raise RowFault(Reason.MALFORMED_ROW, f"column {columns.boxes!r}: {fault}") from fault


def _is_box(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 4 and all(type(side) in (int, float) for side in value)


def _converter(frame: BoxFrame, images: Sequence[bytes]) -> Callable[[Sequence[float]], Box]:
    if frame == "corners":
        return box_from_corners
    if frame == "xywh":
        return box_from_xywh
    width, height = _size(images)
    relative = box_from_fractions if frame == "fractions" else box_from_percent
    return lambda sides: relative(sides, width, height)


def _size(images: Sequence[bytes]) -> tuple[int, int]:
    """Of the first image, upright: the frame in which relative boxes are given."""
    if not images:
        raise RowFault(Reason.MISSING_IMAGE, "boxes relative to an image, but no image")
    found = probe(images[0])
    return found.plain.size if found.plain is not None else (found.width, found.height)


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
