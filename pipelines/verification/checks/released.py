"""Checks of released trajectories: what the sandbox shows now is what the release says that its code showed."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import Observation, Sample
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.grading import grade

MAX_DIFFERENCE = 8.0
"""Mean difference of two images' pixels in levels of 255: releases re-encode theirs as JPEG."""
_MARKER = re.compile(r"</?\w{1,20}>")


def release_of(sample: Sample) -> dict[str, Any] | None:
    """Record that the source kept of the released trajectory (``pipelines/sources/transcripts.py``); None without
    one."""
    release = details_of(sample).get("released")
    return release if isinstance(release, dict) else None


@check()
def replays_as_released(case: Case) -> CheckResult:
    """Every round shows what the release says that it showed; ``score`` is the share of rounds that do.

    Images are compared by size and pixels, as JPEG leaves them; the text is compared of rounds without images only,
    because every tool has words of its own for an image.
    """
    release, rounds = release_of(case.sample), case.trajectory.rounds
    if release is None:
        return failed(Flaw.OTHER_OBSERVATION, "the sample holds no released trajectory", score=0.0)
    observations = release["observations"]
    if len(rounds) != len(observations):
        return failed(Flaw.OTHER_OBSERVATION, f"{len(rounds)} rounds; the release has {len(observations)}", score=0.0)
    images = list(case.sample.images[release["n_question_images"] :])
    others = []
    for number, (turn, recorded) in enumerate(zip(rounds, observations, strict=True), start=1):
        described, images = images[: recorded["n_images"]], images[recorded["n_images"] :]
        released, now = ([case.store.open(ref) for ref in refs] for refs in (described, turn.observation.images))
        protocol, text = case.trajectory.protocol, recorded["text"]
        if difference := observation_difference(protocol, turn.observation, now, text, released):
            others.append(f"round {number}: {difference}")
    score = round(1 - len(others) / len(rounds), 4) if rounds else 1.0
    return decided(not others, Flaw.OTHER_OBSERVATION, "; ".join(others) or f"{len(rounds)} rounds", score=score)


@check()
def agrees_with_label(case: Case) -> CheckResult:
    """The answer is the release's label, where it has one besides the trajectory's own answer."""
    release = release_of(case.sample)
    if release is None or not release["has_label"]:
        return passed("not compared: the release has no label besides this answer")
    verdict = grade(case.trajectory.answer, case.sample)
    return decided(verdict.right, Flaw.WRONG_ANSWER, f"{verdict.kind}: {verdict.detail}")


def observation_difference(
    protocol: str,
    observation: Observation,
    images: Sequence[Image.Image],
    released_text: str,
    released_images: Sequence[Image.Image],
    *,
    max_difference: float = MAX_DIFFERENCE,
) -> str:
    """Describe how an observation with ``images`` differs from the released one; empty if it does not.

    ``max_difference``: of pixels, on average, in levels of 255.
    """
    if len(images) != len(released_images):
        error = f" ({observation.error})" if observation.error else ""
        return f"{len(images)} images{error}, released {len(released_images)}"
    for before, after in zip(released_images, images, strict=True):
        if before.size != after.size:
            return f"an image of {after.width}x{after.height}, released {before.width}x{before.height}"
        pixels = [np.asarray(image.convert("RGB"), np.int16) for image in (before, after)]
        if (mean := float(np.abs(pixels[0] - pixels[1]).mean())) > max_difference:
            return f"an image of other pixels, by {mean:.3g} of 255 on average"
    if images:
        return ""
    parts = PROTOCOLS[protocol].wrap(observation)
    printed = _MARKER.sub("", "".join(part.text for part in parts if isinstance(part, Text)))
    now, before_text = (" ".join(text.split()) for text in (printed, released_text))
    return "" if now == before_text else f"printed {now[:80]!r}, released {before_text[:80]!r}"
