"""Videos are probed before they are trusted, and stored as they came."""

from __future__ import annotations

import io

import pytest

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage import media_validation
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import probe_video, thumbnails
from darkroom.sandbox._guest.video import VideoReader


@pytest.mark.parametrize(("format", "name"), [("mp4", "mp4"), ("matroska", "mkv"), ("avi", "avi"), ("mpegts", "ts")])
def test_a_video_says_what_the_sandboxs_reader_finds(clip, format, name):
    data = clip(format=format)
    found, reader = probe_video(data), VideoReader(io.BytesIO(data))
    assert (found.format, found.n_frames, found.fps) == (name, len(reader), 8.0)
    assert (found.height, found.width) == reader[0].shape[:2]


def test_every_frame_has_its_thumbnail(clip):
    found = thumbnails(clip(n_frames=9), side=16)
    assert found.shape == (9, 16, 16, 3)
    assert abs(found[0] - found[8]).mean() > 5


@pytest.mark.parametrize(
    "data", [b"", b"no video at all", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", b"GIF89a", b"\x00" * 4000]
)
def test_what_is_no_video_is_unreadable(data):
    with pytest.raises(RowError) as error:
        probe_video(data)
    assert error.value.reason is Reason.UNREADABLE_VIDEO


def test_a_video_that_was_cut_off_is_unreadable(clip):
    data = clip()
    with pytest.raises(RowError, match="unreadable_video"):
        probe_video(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("limit", "most", "evidence"),
    [("MAX_VIDEO_BYTES", 100, "bytes"), ("MAX_FRAMES", 23, "24 frames"), ("MAX_PIXELS", 19_199, "19,200 pixels")],
)
def test_what_is_too_large_says_by_what(clip, monkeypatch, limit, most, evidence):
    monkeypatch.setattr(media_validation, limit, most)
    with pytest.raises(RowError, match=evidence) as error:
        probe_video(clip())
    assert error.value.reason is Reason.TOO_LARGE_VIDEO


def test_the_store_keeps_a_videos_bytes_once(clip, store: ImageStore):
    ref = store.add_video(clip())
    assert store.add_video(clip()) == ref
    assert store.read(ref) == clip()
    assert (ref.format, ref.width, ref.height, ref.n_frames, ref.fps) == ("mp4", 160, 120, 24, 8.0)
