"""Crop: look closer at the part of the image that the question is about (Thyme appendix B, Coding Data 1; table 10).

The policy receives the target's place in round numbers, which may show in the code only. A target for which a crop
would be lazy is unsuitable (``target_region``). Rows whose question is always answered without tools ship on request
only (``max_without_tools=1``).
"""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe, as_text, target_region, told_region
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import (
    Necessity,
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    hint_stays_hidden,
    shows_an_image,
)


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The image as it is; the region to crop as the hint, exactly and as the prompt has it."""
    exact = target_region(sample)
    return PreparedSample(sample.images, {"region": as_text(exact), "told_region": as_text(told_region(exact, sample))})


recipe = Recipe(
    family="crop",
    description="Cropping: the target is small, the policy crops it, looks and answers (Thyme App. B, table 10).",
    file=Path(__file__),
    prompt=bundled_prompt("crop"),
    protocol=Thyme(),
    n_wanted=28_000,
    necessity=Necessity(),
    samples=Applicability(images=True, box=True, also="the target is too small to see at the model's size"),
    prepare=prepare,
    checks=(executes, shows_an_image, crop_contains_target, crop_is_tight, answer_matches, hint_stays_hidden),
)
