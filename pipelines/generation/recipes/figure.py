r"""Figure: a problem in words, solved by drawing it and looking at the drawing (FIGR §3.1, figure 6).

The sample has no image: the first one that the policy sees is its own. Which problems gain from a drawing is the
sample's ``truth.details["drawing_helps"]``; FIGR has eight votes of a classifier for it (§3.3). Where a sample does not
say, the words of its question decide.
"""

import re
from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import answer_verified, drawing_needed, executes, figure_rendered

_DRAWABLE = re.compile(
    r"\b(?:triangles?|circles?|squares?|rectangles?|polygons?|quadrilaterals?|trapezoids?|hexagons?|parabolas?|ellipses?|"
    r"hyperbolas?|tangents?|chords?|angles?|vert(?:ex|ices)|intersect\w*|graphs?|curves?|coordinates?|lattice|plane|"
    r"intervals?|regions?|perimeter|diagonals?|radius|reflect\w*)\b",
    re.IGNORECASE,
)


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The problem in words; nothing is shown."""
    label = details_of(sample).get("drawing_helps")
    if not (_DRAWABLE.search(sample.question) if label is None else label):
        raise RowError(Reason.UNSUITABLE, "a drawing would not help with this problem")
    return PreparedSample(())


recipe = Recipe(
    family="figure",
    description="Figure: a problem in words is drawn by a program, the drawing is looked at, then answered (FIGR).",
    file=Path(__file__),
    prompt=bundled_prompt("figure"),
    protocol=ToolCall(),
    samples=Applicability(
        images=False, videos=False, categories=("math", "geometry"), also="a drawing helps with the problem"
    ),
    prepare=prepare,
    checks=(executes, figure_rendered, drawing_needed, answer_verified),
    max_rounds=4,
)
