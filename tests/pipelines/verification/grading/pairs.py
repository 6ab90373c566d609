"""Pairs of a prediction and a right answer, and whether they are the same: ``pairs/*.txt``, read into samples.

    ## number | How many birds are there? | 12 | {"category": "object"}
    + twelve
    - eleven

Files that begin with 1 or an even number were looked at while rules were written (``tuned``); those with another odd
number are only counted (``held_out``). From 4 on a line ``# names`` begins a section of that name, and the grader of an
``auto`` pair is the one that its sample gets.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth
from darkroom.pipelines.verification.grading import grader_of

FOLDER = Path(__file__).with_name("pairs")


class Pair(NamedTuple):
    """One prediction. ``grader`` is the one of the pair's kind; the sample's own may be another."""

    prediction: str
    is_same: bool
    sample: Sample
    grader: Grader
    file: str
    half: str
    section: str = ""


def pairs(pattern: str = "*.txt") -> Iterator[Pair]:
    """The pairs of all files, in order. Raises ``ValueError`` for a line that is none."""
    for path in sorted(FOLDER.glob(pattern)):
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[Pair]:
    head: tuple[Sample, Grader] | None = None
    number = int(path.name.partition("_")[0])
    half = "held_out" if number > 1 and number % 2 else "tuned"
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            head = _head(line[3:])
        elif line[:2] in ("+ ", "- ") and head:
            yield Pair(line[2:].replace(r"\n", "\n"), line[0] == "+", *head, path.stem, half, section)
        elif line.startswith("# "):
            section = line[2:] if number >= 4 else ""
        elif line.strip():
            raise ValueError(f"{path}: expected '## …', '+ …' or '- …', found {line!r}")


def _head(text: str) -> tuple[Sample, Grader]:
    kind, question, answer, *rest = text.split(" | ")
    settings: dict[str, Any] = json.loads(rest[0]) if rest else {}
    question = question.replace(r"\n", "\n")
    images = tuple(ImageRef("a" * 64, width, height, "RGB", "PNG") for width, height in settings.get("images", ()))
    choices, category = tuple(settings.get("choices", ())), settings.get("category", "object")
    details = {name: settings[name] for name in ("tolerance", "unit") if name in settings}
    truth = Truth(details=json.dumps(details)) if details else Truth()
    sample = Sample("s" * 64, "test", "1", "", images, question, choices, answer, truth, category)
    if kind == "auto":
        return sample, grader_of(sample)
    told = settings.get("kind", kind), settings.get("tolerance", 0.0), settings.get("unit", "")
    return sample, Grader(*told, is_ordered=settings.get("is_ordered", False))
