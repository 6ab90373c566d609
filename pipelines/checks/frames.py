"""Checks on the frames of a video that a rollout looked at, counted and compared on the pictures that it was shown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.images import ImageStore
from pipelines.moments import Moment, moments_of
from pipelines.records import ImageRef, VideoRef
from pipelines.shown_frames import SIDE, ShownFrame, shown_frames
from pipelines.videos import Thumbnails, thumbnails
from pipelines.visual_tokens import QWEN2_5_VL, QWEN3_VL, visual_tokens

MAX_FRAMES_SHOWN = 32
"""PyVision-RL's cases sample 15 frames and look again at some (figures 19 and 20)."""
MAX_VISUAL_TOKENS = 16_000
"""Of Qwen2.5-VL, for one row: half of the context that PyVision-RL evaluates with (§4); its rows need 5,000."""


@check()
def frames_within_budget(case: Case) -> Verdict:
    """At most ``MAX_FRAMES_SHOWN`` frames were shown, a picture without any counted as one; ``score`` is how many."""
    pictures = [max(1, *(len(frames) for frames in _seen(case, picture))) for picture in _pictures(case)]
    n_frames = sum(pictures)
    detail = f"{n_frames} frames in {len(pictures)} pictures"
    if n_frames <= MAX_FRAMES_SHOWN:
        return passed(detail, score=float(n_frames))
    return failed(Flaw.TOO_MANY_FRAMES, f"{detail}, at most {MAX_FRAMES_SHOWN}", score=float(n_frames))


@check()
def visual_tokens_within_budget(case: Case) -> Verdict:
    """All pictures of the row cost at most ``MAX_VISUAL_TOKENS``; ``score`` is what they cost Qwen2.5-VL."""
    costs = {
        vision.name: sum(visual_tokens(image.width, image.height, vision) for image in case.trajectory.shown_images)
        for vision in (QWEN2_5_VL, QWEN3_VL)
    }
    detail = ", ".join(f"{cost} visual tokens of {name}" for name, cost in costs.items())
    n_tokens = costs[QWEN2_5_VL.name]
    if n_tokens <= MAX_VISUAL_TOKENS:
        return passed(detail, score=float(n_tokens))
    return failed(Flaw.TOO_MANY_FRAMES, f"{detail}, at most {MAX_VISUAL_TOKENS}", score=float(n_tokens))


@check()
def relevant_frames_shown(case: Case) -> Verdict:
    """A frame of every moment that the truth names was shown, any frame where it names none.

    ``score`` is the share of moments that were seen. Frames that look the same are not told apart.
    """
    seen = _numbers_seen(case)
    detail = f"shown: frames {', '.join(str(min(numbers)) for _, numbers in seen) or 'none'}"
    moments = moments_of(case.sample)
    missed = [moment for moment in moments if not any(_is_in(moment, *frame) for frame in seen)]
    score = 1 - len(missed) / len(moments) if moments else float(bool(seen))
    if missed:
        wanted = "; ".join(f"{moment.label} in {moment.first} to {moment.end - 1}" for moment in missed)
        return failed(Flaw.FRAMES_MISSED, f"{detail}; missed: {wanted}", score=round(score, 4))
    if not seen:
        return failed(Flaw.FRAMES_MISSED, detail, score=0.0)
    return passed(detail, score=score)


def _is_in(moment: Moment, video: int, numbers: tuple[int, ...]) -> bool:
    return video == moment.video and any(moment.first <= number < moment.end for number in numbers)


def _numbers_seen(case: Case) -> list[tuple[int, tuple[int, ...]]]:
    """Every shown frame: its video, and the numbers of the frames that it may be."""
    return [
        (video, frame.numbers)
        for picture in _pictures(case)
        for video, frames in enumerate(_seen(case, picture))
        for frame in frames
    ]


def _pictures(case: Case) -> list[ImageRef]:
    return [picture for turn in case.trajectory.rounds for picture in turn.observation.images]


def _seen(case: Case, picture: ImageRef) -> Iterator[tuple[ShownFrame, ...]]:
    """The frames of every video that a picture shows, by video."""
    return (_seen_of(case.store, picture, video) for video in case.sample.videos)


@lru_cache(maxsize=256)
def _seen_of(store: ImageStore, picture: ImageRef, video: VideoRef) -> tuple[ShownFrame, ...]:
    return shown_frames(store.open(picture), _film(store, video), aspect=video.width / video.height)


@lru_cache(maxsize=4)
def _film(store: ImageStore, video: VideoRef) -> Thumbnails:
    return thumbnails(store.read(video), side=SIDE)
