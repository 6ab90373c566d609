"""The frames of a video that a rollout looked at, on the images that it was shown."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.records import Observation, Round, Truth
from darkroom.pipelines.records.samples import TemporalSegment, as_details
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks import (
    Flaw,
    frames_within_budget,
    relevant_frames_shown,
    visual_tokens_within_budget,
)
from darkroom.pipelines.verification.checks.frames import MAX_FRAMES_SHOWN
from darkroom.sandbox._guest.video import VideoReader

MOMENTS = (TemporalSegment("sign", 4, 9), TemporalSegment("flag", 18, 22))


@pytest.fixture
def frames(clip) -> list[Image.Image]:
    reader = VideoReader(io.BytesIO(clip()))
    return [Image.fromarray(reader[number].asnumpy()) for number in range(len(reader))]


@pytest.fixture
def watched(make_case, clip, store):
    """A rollout about a video of 24 frames whose rounds showed the given images."""

    def make(*rounds: Sequence[Image.Image], moments: Sequence[TemporalSegment] = MOMENTS) -> Case:
        seen = tuple(
            Round("", "", Observation("ok", "", images=tuple(store.add_pixels(image) for image in images)))
            for images in rounds
        )
        case = make_case(rounds=seen)
        sample = replace(
            case.sample, images=(), videos=(store.add_video(clip()),), truth=Truth(details=as_details(moments))
        )
        return replace(case, sample=sample, trajectory=replace(case.trajectory, images=()))

    return make


def sheet(frames: Sequence[Image.Image], columns: int) -> Image.Image:
    rows = [np.hstack([np.asarray(frame) for frame in frames[at : at + columns]]) for at in range(0, 24, columns)]
    return Image.fromarray(np.vstack(rows))


def test_a_frame_of_every_moment_is_enough(watched, frames):
    found = relevant_frames_shown(watched([frames[0], frames[6]], [frames[20]]))
    assert (found.passed, found.score) == (True, 1.0)
    assert found.detail == "shown: frames 0, 6, 20"


def test_without_moments_any_frame_is_enough(watched, frames):
    assert relevant_frames_shown(watched([frames[0]], moments=())).passed


@pytest.mark.parametrize(
    ("shown", "moments", "score"),
    [
        ([0, 6], MOMENTS, 0.5),
        ([3, 9, 17, 22], MOMENTS, 0.0),
        ([], MOMENTS, 0.0),
        ([], (), 0.0),
    ],
)
def test_a_moment_that_was_not_seen_is_named(watched, frames, shown, moments, score):
    found = relevant_frames_shown(watched([frames[number] for number in shown], moments=moments))
    assert (found.passed, found.reason, found.score) == (False, Flaw.FRAMES_MISSED, score)
    assert not moments or "flag in 18 to 21" in found.detail


def test_a_frame_of_another_video_shows_nothing_of_this_one(watched, clip):
    other = VideoReader(io.BytesIO(clip(5)))
    images = [Image.fromarray(other[number].asnumpy()) for number in (6, 20)]
    assert relevant_frames_shown(watched(images)).reason == Flaw.FRAMES_MISSED


def test_frames_are_counted_in_their_sheets(watched, frames):
    found = frames_within_budget(watched([sheet(frames, 6)], [frames[0]]))
    assert (found.passed, found.score, found.detail) == (True, 25.0, "25 frames in 2 pictures")


@pytest.mark.parametrize("n_sheets", [2, 5])
def test_many_frames_in_few_images_are_too_many(watched, frames, n_sheets):
    found = frames_within_budget(watched([sheet(frames, 6)] * n_sheets))
    assert (found.passed, found.reason, found.score) == (False, Flaw.TOO_MANY_FRAMES, 24.0 * n_sheets)


def test_images_without_a_frame_count_as_well(watched, make_image):
    plain = make_image(1, 64, 64)
    assert frames_within_budget(watched([plain] * MAX_FRAMES_SHOWN)).passed
    assert frames_within_budget(watched([plain] * (MAX_FRAMES_SHOWN + 1))).reason == Flaw.TOO_MANY_FRAMES


def test_the_tokens_of_all_images_are_told_for_both_models(watched, make_image):
    found = visual_tokens_within_budget(watched([make_image(1, 384, 288)] * 2))
    assert (found.passed, found.score) == (True, 280.0)
    assert found.detail == "280 visual tokens of Qwen2.5-VL, 216 visual tokens of Qwen3-VL"


def test_images_that_cost_half_the_context_are_too_many(watched, make_image):
    found = visual_tokens_within_budget(watched([make_image(1, 1600, 1200)] * 7))
    assert (found.passed, found.reason) == (False, Flaw.TOO_MANY_FRAMES)
