"""Packaged photographs as they are, with an easy question each.

Where the asked thing was measured it is in ``truth.boxes``; most boxes are large on purpose, so that a crop of them
would be a lazy step. The coins have a count instead.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import NamedTuple

from pipelines.records import Truth, TruthBox
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.choices import Choices, lettered
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, photograph_bytes


class Asked(NamedTuple):
    """What is asked about a photograph; no ``wrong`` options make it an open question."""

    photograph: str
    category: str
    question: str
    answer: str
    wrong: tuple[str, ...]
    truth: Truth


def _seen(label: str, x1: int, y1: int, x2: int, y2: int) -> Truth:
    return Truth(boxes=(TruthBox(label, x1, y1, x2, y2),))


ASKED = (
    Asked(
        *("cat", "object", "Which animal looks out of this photograph?", "cat", ("dog", "rabbit", "owl")),
        truth=_seen("cat", 0, 0, 384, 300),
    ),
    Asked(
        *("astronaut", "attribute", "What colour is the space suit?", "orange", ("white", "blue", "silver")),
        truth=_seen("astronaut", 18, 14, 365, 512),
    ),
    Asked(
        *("coffee", "object", "What lies on the saucer beside the cup?", "spoon", ()),
        truth=_seen("spoon", 318, 234, 408, 327),
    ),
    Asked(
        *("coins", "quantity", "How many coins are there in this photograph?", "24", ("18", "21", "28")),
        truth=Truth(count=24),
    ),
    Asked(
        *("rocket", "object", "What stands between the lattice towers?", "rocket", ("lighthouse", "tree", "statue")),
        truth=_seen("rocket", 306, 125, 341, 408),
    ),
    Asked(
        *("motorcycle", "attribute", "What colour is the tank of the motorcycle?", "red", ()),
        truth=_seen("motorcycle", 106, 60, 686, 452),
    ),
    Asked(
        *("pagoda", "object", "What kind of building is this?", "pagoda", ("castle", "windmill", "railway station")),
        truth=_seen("pagoda", 62, 28, 376, 402),
    ),
    Asked(
        *("flower", "attribute", "What colour are the petals of the flower?", "orange", ("white", "violet", "blue")),
        truth=_seen("flower", 168, 83, 447, 362),
    ),
    Asked(
        *("horse", "object", "Which animal does this silhouette show?", "horse", ("cow", "camel", "dog")),
        truth=_seen("horse", 16, 8, 391, 314),
    ),
    Asked(*("camera", "object", "What does the camera stand on?", "tripod", ()), truth=Truth()),
)


def photographs(seed: int) -> list[LazyRow]:
    """The photographs by name, not read yet."""
    return [
        LazyRow(f"photo/{asked.photograph}", partial(_photograph, number, asked, seed))
        for number, asked in enumerate(ASKED)
    ]


def _photograph(number: int, asked: Asked, seed: int) -> SourceRow:
    row = f"photo/{asked.photograph}"
    rng = Random(f"{seed}/{row}")
    choices = Choices((), asked.answer)
    if asked.wrong:
        choices = lettered(asked.answer, asked.wrong, place=number + seed, rng=rng)
    return SourceRow(
        row=row,
        images=(photograph_bytes(asked.photograph),),
        question=asked.question,
        answer=choices.answer,
        choices=choices.options,
        truth=asked.truth,
        category=asked.category,
        license=PHOTOGRAPHS[asked.photograph].license,
    )
