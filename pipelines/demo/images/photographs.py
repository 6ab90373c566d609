"""Photographs as they are: an easy question each, and one that the whole image answers at a glance.

Where the target of an easy question was measured it is in ``truth.boxes``; most boxes are large on purpose, so that a
crop of them would be a lazy step. The coins have a count instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from pipelines.demo.images.material import PHOTOGRAPHS, Choices, LazyRow, lettered, photograph_bytes
from pipelines.records import Truth, TruthBox
from pipelines.sources import SourceRow


class PhotographQuestion(NamedTuple):
    """A question about a photograph; no ``wrong`` options make it an open question."""

    photograph: str
    category: str
    question: str
    answer: str
    wrong: tuple[str, ...] = ()
    truth: Truth = Truth()


def _boxed(label: str, x1: int, y1: int, x2: int, y2: int) -> Truth:
    return Truth(boxes=(TruthBox(label, x1, y1, x2, y2),))


EASY = (
    PhotographQuestion(
        *("cat", "object", "Which animal looks out of this photograph?", "cat", ("dog", "rabbit", "owl")),
        truth=_boxed("cat", 0, 0, 384, 300),
    ),
    PhotographQuestion(
        *("astronaut", "attribute", "What colour is the space suit?", "orange", ("white", "blue", "silver")),
        truth=_boxed("astronaut", 18, 14, 365, 512),
    ),
    PhotographQuestion(
        *("coffee", "object", "What lies on the saucer beside the cup?", "spoon", ()),
        truth=_boxed("spoon", 318, 234, 408, 327),
    ),
    PhotographQuestion(
        *("coins", "quantity", "How many coins are there in this photograph?", "24", ("18", "21", "28")),
        truth=Truth(count=24),
    ),
    PhotographQuestion(
        *("rocket", "object", "What stands between the lattice towers?", "rocket", ("lighthouse", "tree", "statue")),
        truth=_boxed("rocket", 306, 125, 341, 408),
    ),
    PhotographQuestion(
        *("motorcycle", "attribute", "What colour is the tank of the motorcycle?", "red", ()),
        truth=_boxed("motorcycle", 106, 60, 686, 452),
    ),
    PhotographQuestion(
        *("pagoda", "object", "What kind of building is this?", "pagoda", ("castle", "windmill", "railway station")),
        truth=_boxed("pagoda", 62, 28, 376, 402),
    ),
    PhotographQuestion(
        *("flower", "attribute", "What colour are the petals of the flower?", "orange", ("white", "violet", "blue")),
        truth=_boxed("flower", 168, 83, 447, 362),
    ),
    PhotographQuestion(
        *("horse", "object", "Which animal does this silhouette show?", "horse", ("cow", "camel", "dog")),
        truth=_boxed("horse", 16, 8, 391, 314),
    ),
    PhotographQuestion(*("camera", "object", "What does the camera stand on?", "tripod", ()), truth=Truth()),
)


GLANCES = (
    PhotographQuestion(
        *("astronaut", "object", "What kind of thing stands upright in the background, behind the astronaut?"),
        "a model of a rocket",
        ("a floor lamp", "a palm tree", "a suit of armour"),
    ),
    PhotographQuestion(
        *("cat", "attribute", "Which colour are the eyes of the animal in this close portrait?"),
        "green",
        ("blue", "red", "white"),
    ),
    PhotographQuestion(
        *("coffee", "object", "What has been served in this picture?"),
        "a cup of coffee",
        ("a bowl of soup", "a glass of milk", "a plate of rice"),
    ),
    PhotographQuestion(
        *("coins", "object", "What is laid out in rows on the dark ground?"),
        "coins",
        ("buttons", "shells", "stamps"),
    ),
    PhotographQuestion(
        *("horse", "location", "Towards which side does the head of the animal in black point?"),
        "right",
        ("left", "up", "down"),
    ),
    PhotographQuestion(
        *("rocket", "attribute", "What colour is the sky above the launch pad?"),
        "dark blue",
        ("orange", "white", "light green"),
    ),
    PhotographQuestion(
        *("motorcycle", "location", "In what kind of place is the motorcycle parked?"),
        "a workshop",
        ("a beach", "a kitchen", "a meadow"),
    ),
    PhotographQuestion(
        *("pagoda", "object", "What stretches out behind the trees on the right of the tower?"),
        "water",
        ("a desert", "a motorway", "a stadium"),
    ),
    PhotographQuestion(
        *("flower", "attribute", "What is the background behind the big blossom like?"),
        "dark and out of focus",
        ("white and empty", "full of people", "covered with snow"),
    ),
    PhotographQuestion(
        *("camera", "attribute", "What kind of clothes does the man in this grey photograph wear?"),
        "a dark coat",
        ("a striped shirt", "swimming trunks", "a white apron"),
    ),
    PhotographQuestion(
        *("galaxies", "attribute", "How is the ground coloured on which all the small bright spots lie?"),
        "black",
        ("yellow", "grey", "light blue"),
    ),
    PhotographQuestion(
        *("retina", "attribute", "What outline does the bright part of this medical picture have?"),
        "a circle",
        ("a triangle", "a square", "a star"),
    ),
)


def photographs(seed: int) -> list[LazyRow]:
    """The easy questions by name, their photographs not read yet."""
    return photograph_rows([f"photo/{question.photograph}" for question in EASY], EASY, seed)


def overviews(seed: int) -> list[LazyRow]:
    """The questions at a glance by name, their photographs not read yet."""
    return photograph_rows([f"overview/{question.photograph}" for question in GLANCES], GLANCES, seed)


def _packaged(question: PhotographQuestion) -> bytes:
    return photograph_bytes(question.photograph)


def photograph_rows(
    names: Sequence[str],
    questions: Sequence[PhotographQuestion],
    seed: int,
    *,
    image: Callable[[PhotographQuestion], bytes] = _packaged,
) -> list[LazyRow]:
    """A row for each question; ``image`` makes its file."""
    pairs = enumerate(zip(names, questions, strict=True))
    return [LazyRow(name, partial(_row, name, number, question, seed, image)) for number, (name, question) in pairs]


def _row(
    name: str, number: int, question: PhotographQuestion, seed: int, image: Callable[[PhotographQuestion], bytes]
) -> SourceRow:
    choices = Choices((), question.answer)
    if question.wrong:
        choices = lettered(question.answer, question.wrong, place=number + seed, rng=Random(f"{seed}/{name}"))
    return SourceRow(
        row=name,
        images=(image(question),),
        question=question.question,
        answer=choices.answer,
        choices=choices.options,
        truth=question.truth,
        category=question.category,
        license=PHOTOGRAPHS[question.photograph].license,
    )
