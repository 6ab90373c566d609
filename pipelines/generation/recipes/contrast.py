"""Contrast: the image is faint, the policy restores it, looks and answers (Thyme appendix B, Coding Data 3).
``prepare`` fades the image by a seed, unless it was found faint. For samples with print, or with a known place where
detail is; what would not come back after fading is unsuitable."""

from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import answer_matches, executes, hint_stays_hidden, shows_an_image
from darkroom.pipelines.verification.checks.image_operations import legibility_gain
from darkroom.pipelines.vision.legibility import FAINT, contrast, likeness, sample_degradation

MAX_SIDE = 2048
"""Pixels. What is small in a larger image needs a crop before it needs contrast."""

MIN_RECOVERABLE = 0.6
"""Correlation that a plain restoration of the faded part must reach with the original."""


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The image faded, or as it is where it is faint; what is wrong with it, in a word, as the hint."""
    boxes = [truth.box for truth in sample.truth.boxes if truth.image == 0]
    image = sample.images[0]
    if max(image.width, image.height) > MAX_SIDE:
        raise RowError(Reason.UNSUITABLE, f"{image.width}x{image.height} pixels: longer than {MAX_SIDE}")
    original = store.open(image).convert("RGB")
    part = (boxes[0] if boxes else Box(0, 0, *original.size)).grown(10).clipped(*original.size)
    if contrast(original).rms < FAINT:
        return PreparedSample(sample.images, {"fault": "found faint"})
    fade = sample_degradation(seed_from("contrast", sample.sample_id))
    faint = fade.faded(original)
    smooth = cv2.GaussianBlur(np.asarray(faint.crop(part).convert("L")), (0, 0), 0.8)
    recovered = likeness(Image.fromarray(smooth), original.crop(part))
    if recovered < MIN_RECOVERABLE:
        raise RowError(Reason.UNSUITABLE, f"faded, too little comes back: likeness {recovered:.2f} to the original")
    faded = store.add_pixels(faint, parent=image.sha256, made_by=f"contrast: {fade}")
    error = f"{fade.kind} and grainy" if fade.noise else fade.kind
    return PreparedSample((faded, *sample.images[1:]), {"fault": error})


recipe = Recipe(
    family="contrast",
    description="Contrast: the image is faint, the policy restores it, looks and answers (Thyme App. B).",
    file=Path(__file__),
    prompt=bundled_prompt("contrast"),
    protocol=Thyme(),
    samples=Applicability(
        images=True,
        box=True,
        categories=("ocr",),
        also="at most 2,048 pixels a side, and what was faded can be restored",
    ),
    prepare=prepare,
    checks=(executes, shows_an_image, legibility_gain, answer_matches, hint_stays_hidden),
    n_wanted=10_000,
)
