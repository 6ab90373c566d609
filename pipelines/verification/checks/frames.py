"""Checks on the frames of a video that a rollout looked at, counted and compared on the images that it was shown."""

from collections.abc import Iterator
from functools import lru_cache

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.samples import temporal_segments
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import Thumbnails, thumbnails
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.vision.frames import SIDE, FrameMatch, match_frames
from darkroom.pipelines.vision.visibility import QWEN2_5_VL, QWEN3_VL, visual_tokens

MAX_FRAMES_SHOWN = 32
"""PyVision-RL's cases sample 15 frames and look again at some (figures 19 and 20)."""
MAX_VISUAL_TOKENS = 16_000
"""Of Qwen2.5-VL, for one row: half of the context that PyVision-RL evaluates with (§4); its rows need 5,000."""


@check()
def frames_within_budget(case: Case) -> CheckResult:
    """At most ``MAX_FRAMES_SHOWN`` frames were shown, an image without any counted as one; ``score`` is how many."""
    images = [max(1, *(len(frames) for frames in _seen(case, image))) for image in case.observed]
    return _within(MAX_FRAMES_SHOWN, sum(images), f"{sum(images)} frames in {len(images)} pictures")


@check()
def visual_tokens_within_budget(case: Case) -> CheckResult:
    """All images of the row cost at most ``MAX_VISUAL_TOKENS``; ``score`` is what they cost Qwen2.5-VL."""
    costs = {
        vision.name: sum(visual_tokens(image.width, image.height, vision) for image in case.trajectory.shown_images)
        for vision in (QWEN2_5_VL, QWEN3_VL)
    }
    detail = ", ".join(f"{cost} visual tokens of {name}" for name, cost in costs.items())
    return _within(MAX_VISUAL_TOKENS, costs[QWEN2_5_VL.name], detail)


def _within(most: int, n: int, detail: str) -> CheckResult:
    more = "" if n <= most else f", at most {most}"
    return decided(n <= most, Flaw.TOO_MANY_FRAMES, detail + more, score=float(n))


@check()
def relevant_frames_shown(case: Case) -> CheckResult:
    """A frame of every moment that the truth names was shown, any frame where it names none.

    ``score`` is the share of moments that were seen. Frames that look the same are not told apart.
    """
    frames = [  # each with its video, and the numbers of the frames that it may be
        (video, frame.numbers)
        for image in case.observed
        for video, matches in enumerate(_seen(case, image))
        for frame in matches
    ]
    detail = f"shown: frames {', '.join(str(min(numbers)) for _, numbers in frames) or 'none'}"
    moments = temporal_segments(case.sample)
    numbers_shown = {(video, number) for video, numbers in frames for number in numbers}
    missed = [m for m in moments if not any((m.video, number) in numbers_shown for number in range(m.first, m.end))]
    score = 1 - len(missed) / len(moments) if moments else float(bool(frames))
    if missed:
        segments = "; ".join(f"{moment.label} in {moment.first} to {moment.end - 1}" for moment in missed)
        return failed(Flaw.FRAMES_MISSED, f"{detail}; missed: {segments}", score=round(score, 4))
    return passed(detail, score=score) if frames else failed(Flaw.FRAMES_MISSED, detail, score=0.0)


def _seen(case: Case, image: ImageRef) -> Iterator[tuple[FrameMatch, ...]]:
    """The frames of every video that an image shows, by video."""
    return (_seen_of(case.store, image, video) for video in case.sample.videos)


@lru_cache(maxsize=256)
def _seen_of(store: ImageStore, image: ImageRef, video: VideoRef) -> tuple[FrameMatch, ...]:
    return match_frames(store.open(image), _film(store, video), aspect=video.width / video.height)


@lru_cache(maxsize=4)
def _film(store: ImageStore, video: VideoRef) -> Thumbnails:
    return thumbnails(store.read(video), side=SIDE)
