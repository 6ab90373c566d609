"""Parts of films: their pixels are the film's, their times are those of its packets, and nothing else is read in."""

from __future__ import annotations

import io
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage import video_cuts
from darkroom.pipelines.storage.media_validation import probe_video
from darkroom.pipelines.storage.video_cuts import cut
from darkroom.sandbox._guest.video import VideoReader
from darkroom.sandbox._guest.video_file import VideoFile
from tests.sandbox.clips import FRAMES_PER_SECOND, X264, encode

GOP = {"g": "50"}
"""A key frame every two seconds."""
KINDS: dict[str, Callable[[Path], Path]] = {
    "h264.mp4": lambda at: encode(at / "a.mp4", n_frames=250, **X264, **GOP),
    "open-gop.mp4": lambda at: encode(at / "a.mp4", n_frames=250, **{"x264-params": "open-gop=1:keyint=50"}),
    "turned.mp4": lambda at: encode(at / "a.mp4", n_frames=250, rotation=90, **X264, **GOP),
    "h264.mkv": lambda at: encode(at / "a.mkv", n_frames=250, with_audio=True, **X264, **GOP),
    "h264.ts": lambda at: encode(at / "a.ts", n_frames=250, **X264, **GOP),
    "vp9.webm": lambda at: encode(at / "a.webm", "libvpx-vp9", n_frames=250, **GOP, deadline="realtime"),
    "vp8.webm": lambda at: encode(at / "a.webm", "libvpx", n_frames=250, **GOP, **{"auto-alt-ref": "1"}),
    "mpeg4.avi": lambda at: encode(at / "a.avi", "mpeg4", n_frames=250, **GOP),
    "flv.flv": lambda at: encode(at / "a.flv", "flv", n_frames=250, **GOP),
}


@pytest.fixture(scope="module", params=KINDS)
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return KINDS[request.param](tmp_path_factory.mktemp("film"))


@pytest.fixture(scope="module")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds, with a key frame every two."""
    return KINDS["h264.mp4"](tmp_path_factory.mktemp("film"))


@pytest.mark.parametrize(("start", "end"), [(5.1, 7.4), (0, 1), (9, 10)])
def test_a_part_shows_the_films_frames_from_the_key_frame_before_it(film: Path, start: float, end: float) -> None:
    part = cut(film, start, end)
    whole, kept = VideoReader(str(film)), VideoReader(io.BytesIO(part.data))
    times = whole.get_frame_timestamp(range(len(whole)))[:, 0]
    first = int(np.abs(times - part.kept_start).argmin())
    assert first == max(key for key in whole.get_key_indices() if times[key] <= start + 1e-6)
    assert first + len(kept) >= np.searchsorted(times, end - 1e-3)
    assert all(np.array_equal(frame, whole[first + number]) for number, frame in enumerate(kept))
    own_times = kept.get_frame_timestamp(range(len(kept)))[:, 0]
    assert np.allclose(own_times, times[first : first + len(kept)] - times[first], atol=2e-3)
    assert part.kept_end == pytest.approx(times[first + len(kept) - 1] + 1 / FRAMES_PER_SECOND, abs=2e-3)


def test_a_part_names_its_film_and_both_its_times(mp4: Path) -> None:
    part = cut(mp4, 5, 7)
    assert part.parent == digest_bytes(mp4.read_bytes())
    assert part[2:5] == (5, 7, 4.0)
    assert part.made_by == f"ingest: cut from a longer one;4.000 to {part.kept_end:.3f} s of it;asked 5.000 to 7.000 s"
    assert probe_video(part.data).format == "mp4"


def test_equal_films_and_times_give_equal_bytes(mp4: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copy(mp4, tmp_path))
    assert cut(mp4, 5, 7) == cut(copied, 5, 7) == cut(mp4.read_bytes(), 5, 7)
    assert cut(mp4, 5, 7).data != cut(mp4, 7, 9).data


def test_what_lies_before_the_part_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film = encode(tmp_path / "long.mp4", n_frames=3000, **X264, **GOP)
    n_read = 0
    packets_of = VideoFile.packets

    def counted(self: VideoFile) -> Any:
        nonlocal n_read
        for packet in packets_of(self):
            n_read += 1
            yield packet

    monkeypatch.setattr(VideoFile, "packets", counted)
    part = cut(film, 101, 103)
    assert part.kept_start == 100
    assert n_read < 100


def test_a_container_that_seeks_behind_the_key_frame_is_read_from_further_back(
    mp4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seek = VideoFile.seek
    monkeypatch.setattr(VideoFile, "seek", lambda self, time: seek(self, time + 12 * 12800))
    late = cut(mp4, 5.1, 7.4)
    monkeypatch.setattr(VideoFile, "seek", lambda *_: False)
    assert cut(mp4, 5.1, 7.4) == late
    monkeypatch.undo()
    assert cut(mp4, 5.1, 7.4) == late


@pytest.mark.parametrize(("start", "end"), [(10.5, 10.9), (5, 12), (5000, 7000), (150, 170)])
def test_times_outside_of_the_film_say_where_it_ends(film: Path, start: float, end: float) -> None:
    with pytest.raises(
        RowError, match=r"the film ends at (9\.9|10\.)\d* s, before the part does.*not milliseconds"
    ) as error:
        cut(film, start, end)
    assert error.value.reason is Reason.MALFORMED_ROW


def test_an_end_that_was_rounded_up_is_the_films(mp4: Path) -> None:
    assert cut(mp4, 9, 10.8).kept_end == pytest.approx(10)


@pytest.mark.parametrize(("limit", "most"), [("MAX_FRAMES", 90), ("MAX_VIDEO_BYTES", 4000)])
def test_a_part_beyond_the_limits_is_too_large_before_it_fills_the_memory(
    mp4: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(video_cuts, limit, most)
    with pytest.raises(RowError, match="from the key frame before the part; ask about a shorter part") as error:
        cut(mp4, 1, 9)
    assert error.value.reason is Reason.TOO_LARGE_VIDEO
    assert len(VideoReader(io.BytesIO(cut(mp4, 9, 9.2).data))) <= 90


def test_a_long_film_is_not_in_memory(tmp_path: Path) -> None:
    """Of 40 MB that a film is padded with, none."""
    film = encode(tmp_path / "long.mkv", n_frames=500, **X264, **GOP)
    with film.open("ab") as file:
        file.write(b"\xec" + (0x0800000000000000 | 1 << 56 | 40_000_000).to_bytes(8) + bytes(40_000_000))  # EBML's void
    tracemalloc.start()
    cut(film, 11, 13)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8_000_000


@pytest.mark.parametrize("data", [b"", b"no film", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n", b"\x00" * 4000])
def test_what_is_no_film_is_unreadable(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(data)
    for film in (data, tmp_path / "film.mp4"):
        with pytest.raises(RowError) as error:
            cut(film, 0, 1)
        assert error.value.reason is Reason.UNREADABLE_VIDEO


def test_a_film_that_was_cut_off_gives_its_sound_parts(tmp_path: Path) -> None:
    whole = KINDS["h264.mkv"](tmp_path)
    damaged = whole.read_bytes()[: whole.stat().st_size // 2]
    assert cut(damaged, 1, 3).data
    with pytest.raises(RowError):
        cut(damaged, 8, 9)


def test_times_that_avi_does_not_store_are_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(RowError, match="h264 in AVI has no times: put it into MP4"):
        cut(encode(tmp_path / "a.avi", n_frames=50, **X264), 0, 1)


def test_what_is_no_file_is_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    for name in ("nowhere.mp4", "pipe.mp4", "."):
        with pytest.raises(RowError, match="there is no file") as error:
            cut(tmp_path / name, 0, 1)
        assert error.value.reason is Reason.MISSING_VIDEO


def test_sound_alone_has_no_part(tmp_path: Path) -> None:
    with av.open(tmp_path / "a.m4a", "w", format="mp4") as container:
        sound = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 16000
        container.mux([*sound.encode(frame), *sound.encode(None)])
    with pytest.raises(RowError, match="without a frame"):
        cut(tmp_path / "a.m4a", 0, 1)
