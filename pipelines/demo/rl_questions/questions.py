"""Questions and their rows: problems in words, and drawings on a small sheet over part of a packaged photograph."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import PHOTOGRAPHS, Choices, LazyRow, font, jpeg_bytes, photograph_image
from darkroom.pipelines.demo.images.maths import problem_row
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow

SIZE = (480, 360)
INK, PAPER = (28, 32, 44), (250, 248, 240)
COLOURS = {
    "red": (204, 44, 40),
    "blue": (40, 84, 188),
    "green": (38, 142, 62),
    "yellow": (240, 206, 44),
    "violet": (134, 66, 168),
    "orange": (238, 132, 30),
}
_BEHIND = ("astronaut", "cat", "coffee", "coins", "rocket", "pagoda", "flower", "motorcycle", "camera", "horse")
_SHARE_OF_PAPER = 0.62


class DrawnQuestion(NamedTuple):
    """An image, what is asked of it, and what is known: the target's label and box, and ``truth.details``."""

    image: Image.Image
    question: str
    choices: Choices
    category: str
    target: tuple[str, Box] | None
    license: str
    details: Mapping[str, Any] = {}


DrawnKind = Callable[[Random, int], DrawnQuestion]
"""Makes the n-th question of its kind."""


class Sheet(NamedTuple):
    """A faint photograph to draw on, and its licence."""

    image: Image.Image
    draw: ImageDraw.ImageDraw
    license: str

    def asks(
        self,
        question: str,
        answer: str | Choices,
        category: str,
        target: tuple[str, Box] | None = None,
        **details: object,
    ) -> DrawnQuestion:
        """Ask about the sheet as it is now; a text is the answer of an open question."""
        choices = answer if isinstance(answer, Choices) else Choices((), answer)
        return DrawnQuestion(self.image, question, choices, category, target, self.license, details)


def sheet(rng: Random) -> Sheet:
    """Part of a photograph, mostly covered by paper, so that no two sheets look alike."""
    name = rng.choice(_BEHIND)
    photograph, (width, height) = photograph_image(name), SIZE
    across = rng.randint(120, min(photograph.width, photograph.height * width // height))
    down = across * height // width
    x, y = rng.randrange(photograph.width - across + 1), rng.randrange(photograph.height - down + 1)
    part = photograph.resize(SIZE, Image.Resampling.BILINEAR, (x, y, x + across, y + down))
    image = Image.blend(part, Image.new("RGB", SIZE, PAPER), _SHARE_OF_PAPER)
    return Sheet(image, ImageDraw.Draw(image), PHOTOGRAPHS[name].license)


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int = 18, fill: Any = INK) -> None:
    """A text with its middle at a place."""
    draw.text(at, text, fill=fill, font=font("DejaVuSans-Bold", size), anchor="mm")


def questions(name: str, kind: DrawnKind, n: int, seed: int) -> list[LazyRow]:
    """``n`` questions of a kind by name, not drawn yet."""
    rows = [f"{name}/{number:02d}" for number in range(n)]
    return [LazyRow(row, partial(_drawn_row, row, kind, number, seed)) for number, row in enumerate(rows)]


def _drawn_row(row: str, kind: DrawnKind, number: int, seed: int) -> SourceRow:
    return as_row(row, kind(Random(f"{seed}/{row}"), number))


def as_row(row: str, question: DrawnQuestion) -> SourceRow:
    """The row of a question."""
    boxes = (TruthBox(question.target[0], *question.target[1]),) if question.target else ()
    details = json.dumps(dict(question.details), sort_keys=True) if question.details else None
    return SourceRow(
        row=row,
        images=(jpeg_bytes(question.image),),
        question=question.question,
        answer=question.choices.answer,
        choices=question.choices.options,
        truth=Truth(boxes=boxes, details=details),
        category=question.category,
        license=question.license,
    )


class WordProblem(NamedTuple):
    """A question, the answer, and its field."""

    category: str
    question: str
    answer: str


ProblemKind = Callable[[Random, int], WordProblem]
"""Makes the n-th problem of its kind: ``n`` chooses the wording."""
Computed = tuple[object, Mapping[str, object]]
"""The answer of a problem, and the values in its wording."""
Computation = Callable[[Random, int], Computed]


def problems(name: str, kinds: Sequence[ProblemKind], n_of_each: int, *, suitable: bool, seed: int) -> list[LazyRow]:
    """``n_of_each`` problems of each kind, not made yet."""
    rows = [(f"{name}/{n:02d}-{place:02d}", kind, n) for n in range(n_of_each) for place, kind in enumerate(kinds)]
    return [LazyRow(row, partial(_problem_row, row, kind, n, suitable, seed)) for row, kind, n in rows]


def _problem_row(row: str, kind: ProblemKind, n: int, suitable: bool, seed: int) -> SourceRow:
    problem = kind(Random(f"{seed}/{row}"), n)
    return problem_row(row, problem.question, problem.answer, {"suitable": suitable}, category=problem.category)


def problem_kinds(module: str, computations: Mapping[str, Computation]) -> tuple[ProblemKind, ...]:
    """The kinds of problems that a module reckons out, in the field and the words that the table beside it gives."""
    table = data_beside(module)
    return tuple(partial(_problem, compute, **table[name]) for name, compute in computations.items())


def _problem(compute: Computation, rng: Random, n: int, *, category: str, wordings: Sequence[str]) -> WordProblem:
    answer, values = compute(rng, n)
    return WordProblem(category, wordings[n % len(wordings)].format(**values), str(answer))
