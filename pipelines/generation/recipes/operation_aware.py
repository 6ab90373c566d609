"""Operation-aware: half of the rows zoom in with a tool call, half answer in words (Look Less, Reason More, §4.1).

Measurements of the sample decide (``pipelines/vision/visibility.py``): a target that needs a closer look is zoomed in
on, a visible one is answered in words, and of those between half are zoomed in on. A turned or faint image is
unsuitable. The system prompt is the neutral one, as in the paper's SFT data. With ``DARKROOM_OPERATION_PROMPTS=all`` it
is drawn by seed: forced or free where the row calls, forbidden or free where it does not (appendix B, prompts 2 to 4).
"""

import os
import random
from pathlib import Path
from typing import Literal

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import (
    Recipe,
    RecipeError,
    as_fractions,
    as_looked_up,
    as_text,
    require_known_place,
    with_margin,
)
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import (
    answer_matches,
    calls_are_valid,
    hint_stays_hidden,
    mode_is_obeyed,
    no_round_is_broken,
    zooms_on_target,
)
from darkroom.pipelines.vision.visibility import visibility_of

Style = Literal["tool", "text"]
PROMPTS = "DARKROOM_OPERATION_PROMPTS"
MODES: dict[str, dict[Style, tuple[str, ...]]] = {
    "neutral": {"tool": ("free",), "text": ("free",)},
    "all": {"tool": ("forced", "free"), "text": ("forbidden", "free")},
}
"""The modes of rows with and without a call, by what ``DARKROOM_OPERATION_PROMPTS`` says."""


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The images as they are; how the row is to be written, and where it zooms in."""
    require_known_place(sample, store)
    visibility = visibility_of(sample, store)
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    if visibility.is_turned or visibility.is_faint:
        flaw = "turned" if visibility.is_turned else "faint"
        raise RowError(Reason.UNSUITABLE, f"the image is {flaw}, and a crop does not help with that")
    zooms = visibility.needs_closer_look
    if visibility.size == "between":  # half of the targets that may or may not be looked at closer
        zooms = visibility.is_detail or bool(seed_from("operation_aware/style", sample.sample_id) % 2)
    style: Style = "tool" if target and zooms else "text"
    mode = random.Random(seed_from("operation_aware/mode", sample.sample_id)).choice(modes()[style])
    hint = {"style": style, "image": "", "region": "", "told_region": ""}
    if target and style == "tool":
        image = sample.images[target.image]
        exact = with_margin(target.box, image)
        rng = random.Random(seed_from("region", sample.sample_id))
        sides = as_fractions(exact, image)
        prompted = as_fractions(as_looked_up(exact, image, rng), image, digits=2)
        hint |= {"image": str(target.image + 1), "region": as_text(sides), "told_region": as_text(prompted)}
    return PreparedSample(sample.images, hint, mode)


def modes() -> dict[Style, tuple[str, ...]]:
    """The modes that rows are given. Raises ``RecipeError`` for another value of ``DARKROOM_OPERATION_PROMPTS``."""
    chosen = os.environ.get(PROMPTS) or "neutral"
    if chosen not in MODES:
        raise RecipeError(f"{PROMPTS} is {chosen!r}: expected one of {', '.join(MODES)}")
    return MODES[chosen]


recipe = Recipe(
    family="operation_aware",
    description="Operation-aware: a zoom by tool call where needed, words where not (Look Less, Reason More, §4.1).",
    file=Path(__file__),
    prompt=bundled_prompt("operation_aware"),
    protocol=ToolCall(),
    samples=Applicability(images=True, videos=False, also="the image is neither turned nor faint"),
    prepare=prepare,
    checks=(calls_are_valid, mode_is_obeyed, no_round_is_broken, zooms_on_target, answer_matches, hint_stays_hidden),
    loss_policy="all_rounds",
    balanced_by=lambda row: "with a call" if row.rounds else "without a call",
    options=modes,
)
