"""Moments of a video live in the truth's details."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.moments import Moment, as_details, moments_of
from pipelines.records import Truth, VideoRef

VIDEO = VideoRef("v" * 64, "mp4", 160, 120, 24, 8.0)


@pytest.fixture
def asked(make_case):
    def make(details: str | None):
        return replace(make_case().sample, truth=Truth(details=details), videos=(VIDEO,))

    return make


def test_moments_come_back_as_they_were_written(asked):
    moments = (Moment("sign", 3, 9), Moment("", 0, 24))
    assert moments_of(asked(as_details(moments))) == moments


@pytest.mark.parametrize("details", [None, "", "{}", '{"verifier": "reasoning_gym"}'])
def test_other_details_are_no_moments(asked, details):
    assert moments_of(asked(details)) == ()


@pytest.mark.parametrize(
    "details",
    [
        "no JSON",
        '{"moments": 3}',
        '{"moments": [{"first": 3}]}',
        as_details([Moment("", 9, 9)]),
        as_details([Moment("", 9, 25)]),
        as_details([Moment("", 0, 9, video=1)]),
        as_details([Moment("", -1, 9)]),
    ],
)
def test_a_moment_that_no_video_has_is_refused(asked, details):
    with pytest.raises(ValueError, match="moment"):
        moments_of(asked(details))
