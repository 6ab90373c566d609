"""Agentic image: the policy talks with a Python that has the images open until it answers (PyVision-RL §3.1, §3.4).

The prompt holds nothing beyond the question. Kept are rows with the right answer, at least two tool turns and no broken
one, as the paper's SFT data were filtered. A target that fills more than ``MAX_TARGET_SHARE`` of its image is
unsuitable: there one look is enough.
"""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe, require_small
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import answer_matches, has_tool_turns, hint_stays_hidden, no_round_is_broken

MAX_TARGET_SHARE = 0.1


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The images as they are, and no hint."""
    for target in sample.truth.boxes[:1]:
        require_small(target.box, sample.images[target.image], MAX_TARGET_SHARE)
    return PreparedSample(sample.images)


recipe = Recipe(
    family="agentic_image",
    description="Agentic image: the policy works on the image in a Python runtime until it answers (PyVision-RL §3.1).",
    file=Path(__file__),
    prompt=bundled_prompt("agentic_image"),
    protocol=PyVision(),
    samples=Applicability(images=True, videos=False, also="a target is small in its image"),
    prepare=prepare,
    checks=(answer_matches, has_tool_turns, no_round_is_broken, hint_stays_hidden),
    loss_policy="all_rounds",
)
