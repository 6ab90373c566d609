"""Rows that a stage must find out: wrong labels, questions of another image, facts that no image shows, trivial and
ambiguous ones. ``truth.details`` says which (``planted``), and the true answer where the label is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from pipelines.records import Truth
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.choices import Choices, lettered
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, photograph_image
from pipelines.sources.demo_rl.constructions import CONSTRUCTIONS
from pipelines.sources.demo_rl.instruments import dial
from pipelines.sources.demo_rl.problem import Problem
from pipelines.sources.demo_rl.reckonings import RECKONINGS
from pipelines.sources.demo_rl.shapes import colour_of_a_shape, number_of_shapes
from pipelines.sources.demo_rl.sheet import COLOURS, Asked, Kind, as_row, sheet, write
from pipelines.sources.demo_rl.signs import board, plate

_LOOKED_UP = (
    ("astronaut", "On which mission did this astronaut first fly into space?", "STS-63"),
    ("rocket", "Which satellite did this rocket carry?", "DSCOVR"),
    ("galaxies", "In which year was this picture of galaxies published?", "2012"),
    ("pagoda", "In which city does this pagoda stand?", "Beijing"),
    ("cat", "Who took this photograph of the cat?", "Stéfan van der Walt"),
)
_FALSIFIED: tuple[Kind, ...] = (colour_of_a_shape, plate, number_of_shapes, dial)
_MIXED_UP: tuple[Kind, ...] = (board, dial, plate, board, plate)
"""What is asked about sheets that show none of it."""


def planted(seed: int) -> list[LazyRow]:
    """All of them by name, not drawn yet."""
    made: list[tuple[str, Callable[[str, Random], SourceRow]]] = [
        *((f"wrong_label/{n:02d}", partial(_wrong_label, kind, n)) for n, kind in enumerate(_FALSIFIED)),
        *((f"wrong_label/{4 + n:02d}", partial(_wrong_result, n)) for n in range(2)),
        *((f"mismatch/{n:02d}", partial(_mismatch, kind, n)) for n, kind in enumerate(_MIXED_UP)),
        *((f"outside_knowledge/{n:02d}", partial(_outside_knowledge, n)) for n in range(len(_LOOKED_UP))),
        *((f"trivial/{n:02d}", partial(_trivial, n)) for n in range(4)),
        *((f"ambiguous/{n:02d}", partial(_ambiguous, n)) for n in range(3)),
    ]
    return [LazyRow(row, partial(make, row, Random(f"{seed}/{row}"))) for row, make in made]


def _wrong_label(kind: Kind, n: int, row: str, rng: Random) -> SourceRow:
    return _falsified(as_row(row, kind(rng, 20 + n)))


def _wrong_result(n: int, row: str, rng: Random) -> SourceRow:
    made: Problem = (CONSTRUCTIONS[1], RECKONINGS[3])[n](rng, 7 + n)
    truth = Truth(details=json.dumps({"suitable": not n}))
    asked = SourceRow(row, (), made.question, made.answer, truth=truth, category=made.category, license="Apache-2.0")
    return _falsified(asked)


def _falsified(asked: SourceRow) -> SourceRow:
    """The row with another answer than the right one."""
    right = asked.answer
    if asked.choices:
        wrong = next(choice[0] for choice in asked.choices if choice[0] != right)
    else:
        wrong = "".join(str((int(sign) + 1) % 10) if sign.isdigit() else sign for sign in right)
        wrong = wrong if wrong != right else f"OLD {right}"
    return _marked(replace(asked, answer=wrong), "wrong_label", true_answer=right)


def _mismatch(kind: Kind, n: int, row: str, rng: Random) -> SourceRow:
    """The question about one sheet, with another sheet: shapes, of which it does not speak."""
    asked, shown = kind(rng, 43 + n), colour_of_a_shape(rng, n)
    other = asked._replace(picture=shown.picture, target=None, license=shown.license)
    return _marked(as_row(row, other), "mismatch")


def _outside_knowledge(n: int, row: str, rng: Random) -> SourceRow:
    name, question, answer = _LOOKED_UP[n]
    picture = photograph_image(name)
    left = rng.randrange(picture.width // 8)
    shown = picture.crop((left, 0, picture.width, picture.height))
    shown.thumbnail((480, 480))
    asked = Asked(shown, question, Choices((), answer), "knowledge", None, PHOTOGRAPHS[name].license)
    return _marked(as_row(row, asked), "outside_knowledge")


def _trivial(n: int, row: str, rng: Random) -> SourceRow:
    on, colour = sheet(rng), tuple(COLOURS)[n]
    on.draw.ellipse((60, 10, 400, 350), fill=COLOURS[colour])
    wrong = [other for other in COLOURS if other != colour][:3]
    what = ("disc", "big dot", "circle", "ball")[n]
    choices = lettered(colour, wrong, place=n, rng=rng)
    question = f"Which colour has the one {what} that fills this picture?"
    return _marked(as_row(row, Asked(on.picture, question, choices, "attribute", None, on.license)), "trivial")


def _ambiguous(n: int, row: str, rng: Random) -> SourceRow:
    """Two things of the kind that is asked about as if there were one."""
    on, pair = sheet(rng), rng.sample(tuple(COLOURS), 2)
    for place, colour in enumerate(pair):
        x = 90 + 200 * place
        on.draw.rectangle((x, 120, x + 110, 240), fill=COLOURS[colour])
        write(on.draw, (x + 55, 180), str(rng.randrange(10, 99)), 30)
    question = (
        "Which colour is the box?",
        "What colour does the numbered card have?",
        "Name the colour of the square.",
    )[n]
    asked = Asked(on.picture, question, Choices((), pair[0]), "attribute", None, on.license)
    return _marked(as_row(row, asked), "ambiguous")


def _marked(row: SourceRow, planted: str, **known: str) -> SourceRow:
    details = {**json.loads(row.truth.details or "{}"), "planted": planted, **known}
    return replace(row, truth=replace(row.truth, details=json.dumps(details, sort_keys=True, ensure_ascii=False)))
