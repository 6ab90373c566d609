r"""Figure: a problem in words, solved by drawing it and looking at the drawing (FIGR §3.1, figure 6).

The sample has no image: the first one that the policy sees is its own. Which problems gain from a drawing is the
sample's ``truth.details["drawing_helps"]``; FIGR has eight votes of a classifier for it (§3.3). Where a sample does not
say, the words of its question decide.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from pipelines.checks import answer_verified, executes, figure_rendered
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import ToolCall
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared
from pipelines.worked import details_of, worked_of

CATEGORIES = ("math", "geometry")
"""Samples whose category has one of these in it are mathematical problems."""

_DRAWABLE = re.compile(
    r"\b(?:triangles?|circles?|squares?|rectangles?|polygons?|quadrilaterals?|trapezoids?|hexagons?|parabolas?|ellipses?|"
    r"hyperbolas?|tangents?|chords?|angles?|vert(?:ex|ices)|intersect\w*|graphs?|curves?|coordinates?|lattice|plane|"
    r"intervals?|regions?|perimeter|diagonals?|radius|reflect\w*)\b",
    re.IGNORECASE,
)


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The problem in words; nothing is shown."""
    if not any(name in sample.category.casefold() for name in CATEGORIES) or sample.images or sample.videos:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample is no mathematical problem in words alone")
    if not _drawing_helps(sample):
        raise RowFault(Reason.UNSUITABLE, "a drawing would not help with this problem")
    return Prepared(())


def _drawing_helps(sample: Sample) -> bool:
    label = details_of(sample).get("drawing_helps")
    return bool(label) if label is not None else _DRAWABLE.search(sample.question) is not None


def script(turn: Turn) -> str:
    """The oracle: the drawing, then what it shows."""
    worked, draw = worked_of(turn.task.sample), random.Random(turn.task.seed)
    why, shows = draw.choice(_DRAW), draw.choice(_SHOWS)
    if not worked.drawn:
        raise RowFault(Reason.UNSUITABLE, "the source knows no drawing of this problem; only a model can make one")
    if not turn.rounds:
        return ToolCall().write_round(f"{worked.idea} {why}", worked.programs[0], first=True)
    answer = turn.task.sample.answer
    return ToolCall().write_answer(shows.format(seen=worked.seen, answer=answer), answer, first=False)


_DRAW = (
    "I draw it to scale and look.",
    "A picture makes this plain, so I plot it.",
    "Let me sketch it accurately and read it off.",
    "It is easy to slip here without a figure; I draw one.",
)
_SHOWS = (
    "The figure shows {seen}, and the printed value agrees: {answer}.",
    "In the drawing one sees {seen}. That makes {answer}.",
    "Looking at the figure, {seen} can be read off: {answer}.",
)

recipe = Recipe(
    family="figure",
    description="Figure: a problem in words is drawn by a program, the drawing is looked at, then answered (FIGR).",
    file=Path(__file__),
    prompt=bundled_prompt("figure"),
    protocol=ToolCall(),
    prepare=prepare,
    script=script,
    checks=(executes, figure_rendered, answer_verified),
    max_rounds=4,
)
