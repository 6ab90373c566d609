"""Sums of two numbers: the maths of the world, which code computes. ``What is 214 plus 250?``"""

from collections.abc import Iterator
from random import Random

from darkroom.pipelines.demo.images.maths import problem_row
from darkroom.pipelines.records.samples import ReferenceSolution
from darkroom.pipelines.sources import SourceRow
from measurements.ablations.world.made_source import MadeSource

LEAST, MOST = 100, 499
"""Bounds of a summand: a sum has three digits, too."""


class Sums(MadeSource):
    """``n`` sums."""

    name = "sums"
    constants = (LEAST, MOST)

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for number in range(self.n):
            chance = Random(f"{self.seed}/{number}")
            yield _row(f"sum/{self.seed}/{number}", chance.randint(LEAST, MOST), chance.randint(LEAST, MOST))


def _row(row: str, first: int, second: int) -> SourceRow:
    worked = ReferenceSolution(
        idea="Adding the two numbers answers the question.",
        steps=(f"{first} and {second} make {first + second}.",),
        programs=(f"total = {first} + {second}\nprint(total)",),
        seen="the sum",
    )
    question = f"What is {first} plus {second}?"
    return problem_row(row, question, str(first + second), {"worked": worked.as_json()}, category="maths")
