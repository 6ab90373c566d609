"""Walls with a question about one sign, or about two that no single crop shows well: how many looks are needed differs.

The family ``needed_looks`` of the experiments alone looks at every region that the question names, one a round, and for
some rows at the first one again: a model that is trained on them has calls to leave out, and to add.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from PIL import Image

from darkroom.pipelines.demo.images.material import jpeg_bytes
from darkroom.pipelines.demo.street_sign_datasets import LEAST, HungSign, hung_signs
from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.verification.checks import answer_matches, executes, shows_an_image
from measurements.ablations.world.made_source import MadeSource

WIDTH = 960
"""Pixels of a wall's width: its coordinates have three digits."""


class SignsOfWalls(MadeSource):
    """Every sign by itself (``one_look``), and with the next one on its wall (``two_looks``)."""

    name = "signs_of_walls"
    constants = (WIDTH, LEAST)

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        for _, found in groupby(hung_signs(self.n, self.seed), lambda one: one.name.rpartition("/")[0]):
            signs = [one for one in found if min(_scaled(one.region, one.wall)) >= LEAST]
            for place, one in enumerate(signs):
                yield _row(f"{one.name}/one", "one_look", [one])
                if len(signs) > 1:
                    yield _row(f"{one.name}/two", "two_looks", [one, signs[(place + 1) % len(signs)]])


def _row(row: str, category: str, signs: Sequence[HungSign]) -> SourceRow:
    wall = signs[0].wall
    regions = " and ".join(", ".join(map(str, _scaled(one.region, wall))) for one in signs)
    asked = "colour is the street sign in the region"
    if len(signs) > 1:
        asked = "colours are the street signs in the regions"
    question, answer = f"What {asked} {regions}?", " and ".join(one.sign.target.look for one in signs)
    truth = Truth(boxes=tuple(TruthBox(one.sign.target.label, *_scaled(one.sign.box, wall)) for one in signs))
    image = wall.resize((WIDTH, round(wall.height * WIDTH / wall.width)), Image.Resampling.LANCZOS)
    return SourceRow(row, (jpeg_bytes(image),), question, answer, (), truth, category, signs[0].license)


def _scaled(box: Box, wall: Image.Image) -> Box:
    return Box(*(round(side * WIDTH / wall.width) for side in box))


NEEDED_LOOKS = Recipe(
    family="needed_looks",
    description="Needed looks: every region that a question names is cropped, one a round.",
    file=Path(__file__),
    prompt=bundled_prompt("direct"),
    protocol=Thyme(),
    samples=Applicability(images=True),
    checks=(executes, shows_an_image, answer_matches),
    loss_policy="all_rounds",
)
