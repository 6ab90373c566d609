"""Boxes in somebody's rows, in any of their frames, become ours: pixels of the first image, upright."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pipelines.decoding import probe
from pipelines.geometry import Box, box_from_corners, box_from_fractions, box_from_percent, box_from_xywh
from pipelines.records import TruthBox
from pipelines.rejects import Reason, RowFault
from pipelines.sources.columns import BoxFrame, Columns, value_at
from pipelines.sources.json_texts import list_in, object_in
from pipelines.sources.media import describe


def boxes_of(row: Mapping[str, Any], columns: Columns, images: Sequence[bytes]) -> Iterable[TruthBox]:
    """The row's boxes with their labels. Raises ``RowFault`` for what is no box."""
    given = value_at(row, columns.boxes) if columns.boxes else None
    if not given:
        return
    value = object_in(given) or list_in(given)
    if value is None:
        raise RowFault(Reason.WRONG_TYPE, f"column {columns.boxes!r}: expected boxes, found {describe(given)}")
    convert = _converter(columns.box_frame, images)
    for box in [value] if _is_box(value) or isinstance(value, Mapping) else value:
        label, corners = _labelled(box)
        if corners is None or not _is_box(corners):
            raise RowFault(
                Reason.WRONG_TYPE, f"column {columns.boxes!r}: expected four numbers, found {describe(corners)}"
            )
        try:
            yield TruthBox(label, *convert(corners))
        except ValueError as fault:
            raise RowFault(Reason.MALFORMED_ROW, f"column {columns.boxes!r}: {fault}") from fault


def _labelled(box: Any) -> tuple[str, Any]:
    """``{"box": …, "label": …}``, or ``bbox`` and ``name`` as COCO and V* call them, or the corners alone."""
    if not isinstance(box, Mapping):
        return "", box
    return str(box.get("label") or box.get("name") or ""), box.get("box") or box.get("bbox")


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
