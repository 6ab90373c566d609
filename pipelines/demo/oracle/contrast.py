"""The oracle of ``contrast``: code that restores the contrast, then what can be read."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import answer_turn, family_script
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme


def _restore(turn: CompletionRequest) -> str:
    rng, degradation = random.Random(turn.task.seed), str(turn.task.hint["fault"])
    grainy = degradation.endswith("grainy")
    observed = rng.choice(_SEEN[degradation.split()[0]])
    thought = f"{observed}{' There is grain in it, too.' if grainy else ''} {rng.choice(_WHY)} {rng.choice(_THEN)}"
    return Thyme().write_round(thought, rng.choice(_GRAINY_CODES if grainy else _CODES), first=True)


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, Thyme(), _SHOWS)


script = family_script(_restore, _answer)


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
