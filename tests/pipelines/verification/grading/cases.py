"""The adversarial cases of ``adversarial/*.json``, one file per kind of answer.

``wrong`` must never be accepted; ``right`` must be, and ``also_right`` by more than the reward that runs alone;
``refused`` are honest answers that are known not to be, for the price of no false accept; ``asked`` (of ``judged``)
must reach the judge. ``{"text": t, "times": n}`` is t, n times.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth, from_row

KINDS = ("choice", "number", "text", "list", "maths", "box", "judged")


class Said(NamedTuple):
    """One answer to one question."""

    given: str
    sample: Sample
    grader: Grader


def said(kind: str, group: str) -> list[Said]:
    """All answers of a group of a kind."""
    rows = json.loads((Path(__file__).parent / "adversarial" / f"{kind}.json").read_text())
    return [
        Said(_text(one), sample_of(row), from_row(Grader, row["grader"])) for row in rows for one in row.get(group, ())
    ]


def sample_of(row: dict[str, Any]) -> Sample:
    """The question of a row."""
    images = tuple(ImageRef("a" * 64, width, height, "RGB", "PNG") for width, height in row.get("images", ()))
    choices, category = tuple(row.get("choices", ())), row.get("category", "object")
    return Sample("s" * 64, "test", "1", "", images, row["question"], choices, row["answer"], Truth(), category)


def _text(one: str | dict[str, Any]) -> str:
    return one if isinstance(one, str) else one["text"] * one["times"]
