"""The embedded source of RL prompts: rows made at run time, equal wherever the same packages run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.digest import digest
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.demo.lazy import LazyRow, built, installed
from pipelines.sources.demo_rl.constructions import CONSTRUCTIONS
from pipelines.sources.demo_rl.contacts import box_of_a_photograph, place_of_a_photograph
from pipelines.sources.demo_rl.instruments import dial, ruler, thermometer
from pipelines.sources.demo_rl.planted import planted
from pipelines.sources.demo_rl.problem import problems
from pipelines.sources.demo_rl.reckonings import RECKONINGS
from pipelines.sources.demo_rl.routes import route
from pipelines.sources.demo_rl.shapes import (
    colour_of_a_shape,
    form_of_a_shape,
    letters_on_shapes,
    number_of_shapes,
    place_of_a_shape,
)
from pipelines.sources.demo_rl.sheet import Kind, questions
from pipelines.sources.demo_rl.signs import board, plate
from pipelines.sources.demo_rl.sketches import line, right_triangle, sector, share
from pipelines.sources.demo_rl.spoiled import spoiled

DEMO_RL_VERSION = "1"
PACKAGES = ("matplotlib", "pillow", "scikit-image", "scikit-learn")
N_CONSTRUCTIONS, N_RECKONINGS = 5, 5
"""Of each of their kinds."""
ASKED: dict[str, tuple[Kind, int]] = {
    "colour": (colour_of_a_shape, 12),
    "form": (form_of_a_shape, 6),
    "place": (place_of_a_shape, 14),
    "count": (number_of_shapes, 10),
    "letters": (letters_on_shapes, 8),
    "plate": (plate, 20),
    "board": (board, 7),
    "ruler": (ruler, 7),
    "dial": (dial, 7),
    "thermometer": (thermometer, 6),
    "triangle": (right_triangle, 4),
    "sector": (sector, 4),
    "share": (share, 3),
    "line": (line, 4),
    "contact": (place_of_a_photograph, 7),
    "photograph": (box_of_a_photograph, 5),
    "route": (route, 6),
}
"""Kinds of questions about images, with their numbers of rows."""


@dataclass(frozen=True, slots=True)
class DemoRLSource:
    """Problems in words, questions about drawn sheets, planted faults and spoiled files, in one shard.

    Args:
        seed: Other problems, sheets and orders of choices.
    """

    seed: int = 0

    @property
    def name(self) -> str:
        """Always ``demo_rl``."""
        return "demo_rl"

    @property
    def n_shards(self) -> int:
        """Always one."""
        return 1

    @property
    def fingerprint(self) -> str:
        """Digest of the seed, ``DEMO_RL_VERSION`` and the versions of the packages that determine the bytes."""
        return digest([DEMO_RL_VERSION, self.seed, {package: installed(package) for package in PACKAGES}])

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """All rows, each built when it is reached. Raises ``ValueError`` for another shard than 0."""
        if shard != 0:
            raise ValueError(f"demo_rl has the one shard 0; found {shard}")
        return (built(row) for row in self._all())

    def _all(self) -> list[LazyRow]:
        good = [
            *problems("construction", CONSTRUCTIONS, N_CONSTRUCTIONS, suitable=True, seed=self.seed),
            *problems("reckoning", RECKONINGS, N_RECKONINGS, suitable=False, seed=self.seed),
            *(row for name, (kind, n) in ASKED.items() for row in questions(name, kind, n, self.seed)),
        ]
        return [*good, *planted(self.seed), *spoiled(good)]
