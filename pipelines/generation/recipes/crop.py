"""Crop: look closer at the part of the image that the question is about (Thyme appendix B, Coding Data 1; table 10).

The policy receives the target's place in round numbers, which may show in the code only; of a target that must be
searched for, one candidate after the other, from left to right, until one shows what is asked. A target for which a
crop would be lazy is unsuitable (``target_region``). Rows whose question is always answered without tools ship on
request only (``max_without_tools=1``).
"""

from pathlib import Path

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe, as_text, target_region, told_region, with_margin
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import PreparedSample, Task
from darkroom.pipelines.records import Round, Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
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
from darkroom.pipelines.verification.checks.image_operations import print_can_be_read
from darkroom.pipelines.vision.visibility import candidates, findability

MAX_CANDIDATES = 6
SEPARATOR = "; "
NEXT = (
    "If this shows what the question asks about, answer. If not, say so, and look at the next one.\n"
    "Region for the next program, in the original image (left, upper, right, lower): {region}"
)
"""Text beside an observation of a search; here, so that the recipe's digest covers it."""


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The image as it is; the region to crop as the hint, exactly and as the prompt has it; of a search also the
    ``candidates``, in the order in which they are looked at."""
    regions = [target_region(sample)]
    hint: dict[str, str] = {}
    if findability(sample, store) == "searched":
        regions = [with_margin(box, sample.images[0]) for box in candidates(sample)]
        if not 2 <= len(regions) <= MAX_CANDIDATES:
            what = f"the target must be searched for among 2 to {MAX_CANDIDATES} candidates; found {len(regions)}"
            raise RowError(Reason.UNSUITABLE, what)
        hint["candidates"] = SEPARATOR.join(as_text(told_region(region, sample)) for region in regions)
    told = as_text(told_region(regions[0], sample))
    return PreparedSample(sample.images, {"region": as_text(regions[0]), "told_region": told, **hint})


def next_candidate(task: Task, rounds: tuple[Round, ...]) -> str:
    """The next region of a search, in words; empty after the last candidate, and where nothing is searched for."""
    left = task.hint.get("candidates", "").split(SEPARATOR)[len(rounds) :]
    return NEXT.format(region=left[0]) if left else ""


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
    checks=(
        executes,
        shows_an_image,
        crop_contains_target,
        crop_is_tight,
        print_can_be_read,
        answer_matches,
        hint_stays_hidden,
    ),
    max_rounds=MAX_CANDIDATES,
    follow_up=next_candidate,
)
