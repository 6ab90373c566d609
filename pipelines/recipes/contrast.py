"""Contrast: the picture is faint, the policy restores it, looks and answers (Thyme appendix B, Coding Data 3).

``prepare`` fades the image by a seed, unless it was found faint; the policy writes what hides the text and a program
that brings it out, sees the result, and answers. For samples with print, or with a known place where detail is; what
would not come back after fading is unsuitable.
"""

from __future__ import annotations

import random
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from pipelines.checks import answer_matches, executes, hint_stays_hidden, shows_an_image
from pipelines.checks.legibility import legibility_gain
from pipelines.digest import seed_from
from pipelines.fading import fading
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.legibility import FAINT, contrast, likeness
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared, spelled_answer

MAX_SIDE = 2048
"""Pixels. What is small in a larger picture needs a crop before it needs contrast."""

MIN_RECOVERABLE = 0.6
"""Correlation that a plain restoration of the faded part must reach with the original."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image faded, or as it is where it is faint; what is wrong with it, in a word, as the hint."""
    boxes = [truth.box for truth in sample.truth.boxes if truth.image == 0]
    if not sample.images or not (boxes or sample.category.upper() == "OCR"):
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image with print or with a known place of detail")
    image = sample.images[0]
    if max(image.width, image.height) > MAX_SIDE:
        raise RowFault(Reason.UNSUITABLE, f"{image.width}x{image.height} pixels: longer than {MAX_SIDE}")
    original = store.open(image).convert("RGB")
    part = (boxes[0] if boxes else Box(0, 0, *original.size)).grown(10).clipped(*original.size)
    if contrast(original).rms < FAINT:
        return Prepared(sample.images, {"fault": "found faint"})
    fade = fading(seed_from("contrast", sample.sample_id))
    faint = fade.faded(original)
    _require_recoverable(faint.crop(part), original.crop(part))
    shown = store.add_pixels(faint, parent=image.sha256, made_by=f"contrast: {fade}")
    fault = f"{fade.kind} and grainy" if fade.noise else fade.kind
    return Prepared((shown, *sample.images[1:]), {"fault": fault})


def _require_recoverable(faint: Image.Image, original: Image.Image) -> None:
    smooth = cv2.GaussianBlur(np.asarray(faint.convert("L")), (0, 0), 0.8)
    recovered = likeness(Image.fromarray(smooth), original)
    if recovered < MIN_RECOVERABLE:
        raise RowFault(Reason.UNSUITABLE, f"faded, too little comes back: likeness {recovered:.2f} to the original")


def script(turn: Turn) -> str:
    """The oracle: the restoration, then what can be read."""
    return _look(turn) if not turn.rounds else _answer(turn)


def _look(turn: Turn) -> str:
    draw, fault = random.Random(turn.task.seed), str(turn.task.hint["fault"])
    grainy = fault.endswith("grainy")
    seen = draw.choice(_SEEN[fault.split()[0]])
    thought = f"{seen}{' There is grain in it, too.' if grainy else ''} {draw.choice(_WHY)} {draw.choice(_THEN)}"
    return Thyme().write_round(thought, draw.choice(_GRAINY_CODES if grainy else _CODES), first=True)


def _answer(turn: Turn) -> str:
    sample = turn.task.sample
    shows = random.Random(turn.seed).choice(_SHOWS).format(seen=spelled_answer(sample))
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    return Thyme().write_answer(f"{shows}{closing}", sample.answer, first=False)


_SEEN = {
    "pale": (
        "The picture is washed out: everything is almost white.",
        "All of this is so pale that hardly a line shows.",
    ),
    "dark": ("The picture is nearly black, and what it shows drowns in it.", "Far too little light: all is dark."),
    "grey": ("The picture is one flat grey.", "Light and dark parts have almost the same grey here."),
    "found": ("The picture has very little contrast.", "Light and dark differ by a trace only in this picture."),
}
_WHY = (
    "What the question asks for cannot be told from its ground like this.",
    "I cannot read the part that matters with any confidence.",
    "The detail in question must be there, but it barely stands out.",
)
_THEN = (
    "Spreading the few levels over the whole range should bring it out.",
    "I will restore the contrast and look again.",
    "Let me stretch the tones until light and dark are apart.",
)
_SHOWS = (
    "With its contrast back, the picture can be read: {seen}.",
    "Now light and dark are apart, and it clearly is {seen}.",
    "The restored picture leaves no doubt: {seen}.",
)
_SAVE = """\
processed_path = f"/mnt/data/temp_processed_images/restored_{random.randint(1000, 9999)}.png"
"""
_AUTOCONTRAST = f"""\
from PIL import Image, ImageOps
import random

image = Image.open(image_path).convert("L")
# spread the few grey levels that are used over the whole range
restored = ImageOps.autocontrast(image, cutoff=0.5)
{_SAVE}restored.save(processed_path)
print(processed_path)"""
_PERCENTILES = f"""\
import numpy as np
from PIL import Image
import random

levels = np.asarray(Image.open(image_path).convert("RGB")).astype(np.float32)
# the darkest and lightest tones that matter become black and white
low, high = np.percentile(levels, (0.5, 99.5))
stretched = np.clip((levels - low) / max(high - low, 1) * 255, 0, 255)
restored = Image.fromarray(stretched.astype(np.uint8))
{_SAVE}restored.save(processed_path)
print(processed_path)"""
_CLAHE = f"""\
import cv2
import random

gray = cv2.imread(image_path, cv2.IMREAD_GRAYSCALE)
stretched = cv2.normalize(gray, None, 0, 255, cv2.NORM_MINMAX)
# even out what is still flat, region by region
restored = cv2.createCLAHE(clipLimit=1.5, tileGridSize=(4, 4)).apply(stretched)
{_SAVE}cv2.imwrite(processed_path, restored)
print(processed_path)"""
_GAMMA = f"""\
import cv2
import numpy as np
import random

gray = cv2.imread(image_path, cv2.IMREAD_GRAYSCALE).astype(np.float32)
low, high = np.percentile(gray, (0.5, 99.5))
stretched = np.clip((gray - low) / max(high - low, 1), 0, 1)
# lift the middle tones a little
restored = (stretched ** 0.9 * 255).astype(np.uint8)
{_SAVE}cv2.imwrite(processed_path, restored)
print(processed_path)"""
_SMOOTHED = f"""\
import cv2
import numpy as np
import random

gray = cv2.imread(image_path, cv2.IMREAD_GRAYSCALE).astype(np.float32)
# smooth the grain before stretching, or it would be stretched with the rest
smooth = cv2.GaussianBlur(gray, (0, 0), 0.9)
low, high = np.percentile(smooth, (0.5, 99.5))
restored = np.clip((smooth - low) / max(high - low, 0.5) * 255, 0, 255).astype(np.uint8)
{_SAVE}cv2.imwrite(processed_path, restored)
print(processed_path)"""
_BILATERAL = f"""\
import cv2
import numpy as np
import random

image = cv2.imread(image_path).mean(axis=2).astype(np.float32)
low, high = np.percentile(image, (0.5, 99.5))
stretched = np.clip((image - low) / max(high - low, 1) * 255, 0, 255).astype(np.uint8)
# take the grain out, keep the edges
restored = cv2.bilateralFilter(stretched, 5, 60, 3)
{_SAVE}cv2.imwrite(processed_path, restored)
print(processed_path)"""
_CODES = (_AUTOCONTRAST, _PERCENTILES, _CLAHE, _GAMMA)
_GRAINY_CODES = (_SMOOTHED, _BILATERAL)

recipe = Recipe(
    family="contrast",
    description="Contrast: the picture is faint, the policy restores it, looks and answers (Thyme App. B).",
    file=Path(__file__),
    prompt=bundled_prompt("contrast"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(executes, shows_an_image, legibility_gain, answer_matches, hint_stays_hidden),
    n_wanted=10_000,
)
