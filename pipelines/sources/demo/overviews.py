"""Packaged photographs as they are, with questions that the whole picture answers at a glance: nothing to look for."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import NamedTuple

from pipelines.sources.base import SourceRow
from pipelines.sources.demo.choices import lettered
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, photograph_bytes


class Glance(NamedTuple):
    """What is asked about a photograph."""

    photograph: str
    category: str
    question: str
    answer: str
    wrong: tuple[str, str, str]


GLANCES = (
    Glance(
        *("astronaut", "object", "What kind of thing stands upright in the background, behind the astronaut?"),
        "a model of a rocket",
        ("a floor lamp", "a palm tree", "a suit of armour"),
    ),
    Glance(
        *("cat", "attribute", "Which colour are the eyes of the animal in this close portrait?"),
        "green",
        ("blue", "red", "white"),
    ),
    Glance(
        *("coffee", "object", "What has been served in this picture?"),
        "a cup of coffee",
        ("a bowl of soup", "a glass of milk", "a plate of rice"),
    ),
    Glance(
        *("coins", "object", "What is laid out in rows on the dark ground?"),
        "coins",
        ("buttons", "shells", "stamps"),
    ),
    Glance(
        *("horse", "location", "Towards which side does the head of the animal in black point?"),
        "right",
        ("left", "up", "down"),
    ),
    Glance(
        *("rocket", "attribute", "What colour is the sky above the launch pad?"),
        "dark blue",
        ("orange", "white", "light green"),
    ),
    Glance(
        *("motorcycle", "location", "In what kind of place is the motorcycle parked?"),
        "a workshop",
        ("a beach", "a kitchen", "a meadow"),
    ),
    Glance(
        *("pagoda", "object", "What stretches out behind the trees on the right of the tower?"),
        "water",
        ("a desert", "a motorway", "a stadium"),
    ),
    Glance(
        *("flower", "attribute", "What is the background behind the big blossom like?"),
        "dark and out of focus",
        ("white and empty", "full of people", "covered with snow"),
    ),
    Glance(
        *("camera", "attribute", "What kind of clothes does the man in this grey photograph wear?"),
        "a dark coat",
        ("a striped shirt", "swimming trunks", "a white apron"),
    ),
    Glance(
        *("galaxies", "attribute", "How is the ground coloured on which all the small bright spots lie?"),
        "black",
        ("yellow", "grey", "light blue"),
    ),
    Glance(
        *("retina", "attribute", "What outline does the bright part of this medical picture have?"),
        "a circle",
        ("a triangle", "a square", "a star"),
    ),
)


def overviews(seed: int) -> list[LazyRow]:
    """The questions by name, their photographs not read yet."""
    return [
        LazyRow(f"overview/{glance.photograph}", partial(_overview, number, glance, seed))
        for number, glance in enumerate(GLANCES)
    ]


def _overview(number: int, glance: Glance, seed: int) -> SourceRow:
    row = f"overview/{glance.photograph}"
    choices = lettered(glance.answer, glance.wrong, place=number + seed, rng=Random(f"{seed}/{row}"))
    return SourceRow(
        row=row,
        images=(photograph_bytes(glance.photograph),),
        question=glance.question,
        answer=choices.answer,
        choices=choices.options,
        category=glance.category,
        license=PHOTOGRAPHS[glance.photograph].license,
    )
