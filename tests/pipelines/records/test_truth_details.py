"""Moments of a video live in the truth's details."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.records import Truth, VideoRef
from darkroom.pipelines.records.samples import TemporalSegment, as_details, families_of, temporal_segments

VIDEO = VideoRef("v" * 64, "mp4", 160, 120, 24, 8.0)


@pytest.fixture
def asked(make_case):
    def make(details: str | None):
        return replace(make_case().sample, truth=Truth(details=details), videos=(VIDEO,))

    return make


def test_moments_come_back_as_they_were_written(asked):
    moments = (TemporalSegment("sign", 3, 9), TemporalSegment("", 0, 24))
    assert temporal_segments(asked(as_details(moments))) == moments


@pytest.mark.parametrize("details", [None, "", "{}", '{"verifier": "reasoning_gym"}'])
def test_other_details_are_no_moments(asked, details):
    assert temporal_segments(asked(details)) == ()


@pytest.mark.parametrize(
    "details",
    [
        "no JSON",
        '{"moments": 3}',
        '{"moments": [{"first": 3}]}',
        as_details([TemporalSegment("", 9, 9)]),
        as_details([TemporalSegment("", 9, 25)]),
        as_details([TemporalSegment("", 0, 9, video=1)]),
        as_details([TemporalSegment("", -1, 9)]),
    ],
)
def test_a_moment_that_no_video_has_is_refused(asked, details):
    with pytest.raises(ValueError, match="moment"):
        temporal_segments(asked(details))


@pytest.mark.parametrize(
    ("details", "families"),
    [
        ('{"families": ["crop", "direct"]}', ("crop", "direct")),
        ('{"families": "crop"}', ("crop",)),
        ('{"families": []}', ()),
        ('{"families": ""}', None),
        ('{"families": null}', None),
        ('{"other": 1}', None),
        ("families, and no JSON", None),
        (None, None),
    ],
)
def test_a_source_may_name_the_families_of_a_sample(asked, details, families):
    assert families_of(asked(details)) == families
