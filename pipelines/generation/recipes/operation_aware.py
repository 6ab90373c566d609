"""Operation-aware: half of the rows zoom in with a tool call, half answer in words (Look Less, Reason More, §4.1).

What the question is about decides: it is zoomed in on when it is smaller than ``MIN_VISIBLE_SIDE`` in the image as
the model sees it, and else it can be seen as it is. The system prompt that a trained model reads is drawn by seed:
forced or free where the row calls, forbidden or free where it does not (appendix B, prompts 2 to 4).
"""

import random
from pathlib import Path
from typing import Literal

from pipelines.generation.recipes import Recipe, as_fractions, with_margin
from pipelines.models.prompts import bundled_prompt
from pipelines.models.protocols import ToolCall
from pipelines.models.tasks import PreparedSample
from pipelines.records import ImageRef, Sample, TruthBox
from pipelines.records.digest import seed_from
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.storage.images import ImageStore
from pipelines.verification.checks import (
    answer_matches,
    calls_are_valid,
    hint_stays_hidden,
    mode_is_obeyed,
    no_round_is_broken,
    zooms_on_target,
)
from pipelines.vision.visual_tokens import QWEN2_5_VL, resized

Style = Literal["tool", "text"]
MODES: dict[Style, tuple[str, ...]] = {"tool": ("forced", "free"), "text": ("forbidden", "free")}
MIN_VISIBLE_SIDE = QWEN2_5_VL.side
"""Pixels: what is smaller than the square that one visual token stands for is not seen reliably."""


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The images as they are; how the row is to be written, and where it zooms in."""
    if not sample.images or sample.videos:
        raise RowError(Reason.NOT_APPLICABLE, "the question is not about images alone")
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    style: Style = "tool" if target and _is_small(target, sample.images[target.image]) else "text"
    mode = random.Random(seed_from("operation_aware/mode", sample.sample_id)).choice(MODES[style])
    hint = {"style": style, "image": "", "region": ""}
    if target and style == "tool":
        image = sample.images[target.image]
        sides = as_fractions(with_margin(target.box, image), image)
        hint |= {"image": str(target.image + 1), "region": ", ".join(map(str, sides))}
    return PreparedSample(sample.images, hint, mode)


def _is_small(target: TruthBox, image: ImageRef) -> bool:
    wide, high = resized(image.width, image.height, QWEN2_5_VL)
    return min(target.box.width * wide / image.width, target.box.height * high / image.height) < MIN_VISIBLE_SIDE


recipe = Recipe(
    family="operation_aware",
    description="Operation-aware: a zoom by tool call where it is needed, words where not (Look Less, Reason "
    "More, §4.1).",
    file=Path(__file__),
    prompt=bundled_prompt("operation_aware"),
    protocol=ToolCall(),
    prepare=prepare,
    checks=(calls_are_valid, mode_is_obeyed, no_round_is_broken, zooms_on_target, answer_matches, hint_stays_hidden),
    loss_policy="all_rounds",
)
