"""Checks of released trajectories: what the sandbox shows now is what the release says that its code showed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.models.messages import Text
from pipelines.models.protocols import PROTOCOLS
from pipelines.records import ImageRef, Round, Sample
from pipelines.records.samples import details_of
from pipelines.verification.case import Case
from pipelines.verification.checks.base import CheckResult, Flaw, check, failed, passed
from pipelines.verification.grading import grade

MAX_DIFFERENCE = 8.0
"""Mean difference of two images' pixels in levels of 255: releases re-encode theirs as JPEG."""
_MARKER = re.compile(r"</?\w{1,20}>")


def release_of(sample: Sample) -> dict[str, Any] | None:
    """What the source kept of the released trajectory (``pipelines/sources/transcripts.py``); None without one."""
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
        shown, images = images[: recorded["n_images"]], images[recorded["n_images"] :]
        if difference := _difference(case, turn, recorded, shown):
            others.append(f"round {number}: {difference}")
    score = 1 - len(others) / len(rounds) if rounds else 1.0
    if others:
        return failed(Flaw.OTHER_OBSERVATION, "; ".join(others), score=round(score, 4))
    return passed(f"{len(rounds)} rounds", score=1.0)


@check()
def agrees_with_label(case: Case) -> CheckResult:
    """The answer is the release's label, where it has one besides the trajectory's own answer."""
    release = release_of(case.sample)
    if release is None or not release["has_label"]:
        return passed("not compared: the release has no label besides this answer")
    verdict = grade(case.trajectory.answer, case.sample)
    detail = f"{verdict.kind}: {verdict.detail}"
    return passed(detail) if verdict.right else failed(Flaw.WRONG_ANSWER, detail)


def _difference(case: Case, turn: Round, recorded: Mapping[str, Any], shown: Sequence[ImageRef]) -> str:
    """What is different; empty where nothing is."""
    now = turn.observation.images
    if len(now) != len(shown):
        error = f" ({turn.observation.error})" if turn.observation.error else ""
        return f"{len(now)} images{error}, released {len(shown)}"
    for before, after in zip(shown, now, strict=True):
        if (before.width, before.height) != (after.width, after.height):
            return f"an image of {after.width}x{after.height}, released {before.width}x{before.height}"
        pixels = [np.asarray(case.store.open(ref).convert("RGB"), np.int16) for ref in (before, after)]
        if (mean := float(np.abs(pixels[0] - pixels[1]).mean())) > MAX_DIFFERENCE:
            return f"an image of other pixels, by {mean:.0f} of 255 on average"
    texts = (_plain(_printed(case, turn)), _plain(recorded["text"]))
    return "" if now or texts[0] == texts[1] else f"printed {texts[0][:80]!r}, released {texts[1][:80]!r}"


def _printed(case: Case, turn: Round) -> str:
    parts = PROTOCOLS[case.trajectory.protocol].wrap(turn.observation)
    return _MARKER.sub("", "".join(part.text for part in parts if isinstance(part, Text)))


def _plain(text: str) -> str:
    return " ".join(text.split())
