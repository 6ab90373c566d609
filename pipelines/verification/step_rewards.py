"""The reward of one action: by pixels and the known truth, without a judge and without a rollout to its end.

The checks are those of the families, on a case that ends with the action. An action that shows nothing which the
conversation has not shown before is a no-op and gets nothing, whatever it was meant to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkroom.pipelines.records import Check, ImageRef, Round, Sample
from darkroom.pipelines.records.pivots import Goal
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks import answer_matches, crop_contains_target, crop_is_tight
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, MeasuredCheck, failed, passed, record
from darkroom.pipelines.verification.checks.legibility import legibility_gain
from darkroom.pipelines.verification.checks.rotation import angle_undone, upright

CHECKS: Mapping[Goal, tuple[MeasuredCheck, ...]] = {
    "target": (crop_contains_target, crop_is_tight),
    "upright": (upright, angle_undone),
    "contrast": (legibility_gain,),
    "answer": (answer_matches,),
}

_JPEG_LEVELS = 8
"""Of 255, by which a pixel may differ where code saves what it was given as a JPEG."""


def code_goal(sample: Sample, images: tuple[ImageRef, ...], hint: Mapping[str, Any]) -> Goal | None:
    """What code has to reach, by what the recipe did to the first image; None where no pixel decides it."""
    if "angle" in hint:
        return "upright"
    if "fault" in hint:
        return "contrast"
    boxes = sample.truth.boxes
    return "target" if boxes and boxes[0].image == 0 and images[:1] == sample.images[:1] else None


def judge_action(case: Case, goal: Goal, *, is_answer: bool) -> Check:
    """Whether the action with which ``case`` ends reaches ``goal``: its answer, or the code of its last round.

    Passed is a reward of 1, failed of 0; ``reason`` is the flaw, ``detail`` what was measured.
    """
    return record(_judged(case, goal, is_answer), name=goal, version=1)


def _judged(case: Case, goal: Goal, is_answer: bool) -> CheckResult:
    if is_answer and goal != "answer":
        return failed(Flaw.NO_PROGRAM, "answered where a look is needed")
    if not is_answer and goal == "answer":
        return failed(Flaw.HAS_PROGRAM, "wrote code where the answer can be given")
    if not is_answer and (flawed := _without_result(case)):
        return flawed
    details: list[str] = []
    for check in CHECKS[goal]:
        verdict = check.judge(case)
        if verdict.flaw:
            return replace(verdict, score=None)
        details.append(verdict.detail)
    return passed("; ".join(filter(None, details)))


def _without_result(case: Case) -> CheckResult | None:
    """The flaw of code that failed or showed nothing else than before; None where there is something to measure."""
    *before, turn = case.trajectory.rounds
    if turn.observation.status != "ok":
        return failed(Flaw.PROGRAM_FAILED, f"{turn.observation.status}: {turn.observation.error or ''}")
    if not turn.observation.images:
        return failed(Flaw.NO_IMAGE, "the code showed no image")
    output = turn.observation.images[-1]
    if any(_equal(case, output, image) for image in (*case.trajectory.images, *_observed(before))):
        return failed(Flaw.UNCHANGED, "what is shown was shown before")
    return None


def _observed(rounds: Sequence[Round]) -> tuple[ImageRef, ...]:
    return tuple(image for turn in rounds for image in turn.observation.images)


def _equal(case: Case, image: ImageRef, original: ImageRef) -> bool:
    if image.sha256 == original.sha256:
        return True
    if (image.width, image.height) != (original.width, original.height):
        return False
    pixels, before = (np.asarray(case.store.open(ref).convert("RGB"), np.int16) for ref in (image, original))
    return bool(np.abs(pixels - before).max() <= _JPEG_LEVELS)
