"""A video's file: its index, and what is damaged, cut off, too large or no video at all."""

import contextlib
import gc
import os
import random
import resource
from array import array
from pathlib import Path

import av
import numpy as np
import pytest

from darkroom.sandbox._guest.video import VideoReader
from darkroom.sandbox._guest.video_file import FrameIndex, VideoError, read_index
from tests.sandbox.clips import N_FRAMES, X264, encode


def test_frames_of_equal_time_are_told_apart() -> None:
    index = FrameIndex(array("q", [0, 5, 5, 5, 9]), array("q", [0] * 5), [])
    assert index.number_of(5, after=0) == 1
    assert [index.number_of(5, after=number) for number in (1, 2)] == [2, 3]
    assert [index.number_of(pts, after=3) for pts in (9, 7)] == [4, None]


def test_hidden_reference_pictures_of_vp8_do_not_count() -> None:
    def packet(pts: int, first_byte: int, *, is_key: bool = False) -> av.Packet:
        packet = av.Packet(bytes([first_byte, 0]))
        packet.pts, packet.is_keyframe = pts, is_key
        return packet

    packets = [packet(0, 0x10, is_key=True), packet(1, 0x01), packet(2, 0x11)]
    assert list(read_index(packets, "vp8").pts) == [0, 2]


@pytest.mark.parametrize(("content", "name"), [(b"hello\n" * 99, "a.txt"), (b"", "a.mp4"), (b"\0" * 999, "a.mp4")])
def test_what_is_no_video_is_a_clear_error(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(VideoError, match=r"a\.\w+ is not a video that can be read"):
        VideoReader(path)


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    with av.open(tmp_path / "a.wav", "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(VideoError, match="no video stream"):
        VideoReader(tmp_path / "a.wav")


def test_a_raw_stream_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="put it into a container"):
        VideoReader(encode(tmp_path / "a.h264", **X264, n_frames=5))


def test_a_file_that_is_missing_or_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        VideoReader(tmp_path / "none.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(VideoError, match="is not a file"):
        VideoReader(tmp_path / "pipe.mp4")


def test_notes_in_another_encoding_are_no_error(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mkv", **X264, n_frames=3)
    with av.open(path) as old, av.open(tmp_path / "b.mkv", "w") as new:
        copy = new.add_stream_from_template(old.streams.video[0])
        new.metadata["title"] = "Caf_"
        for packet in [packet for packet in old.demux(video=0) if packet.size]:
            packet.stream = copy
            new.mux(packet)
    (tmp_path / "b.mkv").write_bytes((tmp_path / "b.mkv").read_bytes().replace(b"Caf_", b"Caf\xe9"))
    assert len(VideoReader(tmp_path / "b.mkv")) == 3


def test_random_damage_is_a_video_error_or_harmless(mp4: Path, tmp_path: Path) -> None:
    whole, chance = mp4.read_bytes(), random.Random(9)
    for _ in range(60):
        damaged = bytearray(whole[: chance.randrange(len(whole) // 2, len(whole))])
        for _ in range(chance.choice([1, 10, 200])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "a.mp4").write_bytes(damaged)
        with contextlib.suppress(VideoError):
            reader = VideoReader(tmp_path / "a.mp4")
            reader[-1], reader[0]


def test_a_url_is_taken_as_a_path() -> None:
    with pytest.raises(FileNotFoundError):
        VideoReader("http://127.0.0.1:1/a.mp4")


@pytest.mark.parametrize("name", ["a.mkv", "a.ts"])
def test_a_truncated_file_is_readable_up_to_the_fault(tmp_path: Path, name: str) -> None:
    path = encode(tmp_path / name, **X264, g="12")
    whole = [frame.asnumpy() for frame in VideoReader(path)]
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    reader = VideoReader(path)
    assert 5 < len(reader) < N_FRAMES
    assert all(np.array_equal(reader[number], whole[number]) for number in range(len(reader) - 5))


def test_a_frame_in_a_damaged_part_is_an_error_and_the_next_group_is_not(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mp4", **X264, g="12")
    whole = VideoReader(path)[30].asnumpy()
    with av.open(path) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    damaged = bytearray(path.read_bytes())
    for packet in packets[12:24]:
        damaged[packet.pos : packet.pos + packet.size] = b"\xff" * packet.size
    path.write_bytes(damaged)
    reader = VideoReader(path)
    with pytest.raises(VideoError, match=r"frame 15 .* cannot be decoded: Invalid data"):
        reader[15]
    assert np.array_equal(reader[30], whole)


def test_no_frames_is_an_error(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.avi", "mjpeg", pixels="yuvj420p", n_frames=1)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"movi") + 4])
    with pytest.raises(VideoError):
        VideoReader(path)


def test_too_many_pixels_are_refused(mp4: Path) -> None:
    with pytest.raises(VideoError, match="64x48 pixels per frame, more than 3000"):
        VideoReader(mp4, max_pixels=3000)
    with pytest.raises(ValueError, match="more than"):
        VideoReader(mp4, width=100_000, height=100_000)


def test_a_picture_that_grows_within_the_stream_is_refused(tmp_path: Path) -> None:
    small = encode(tmp_path / "small.ts", **X264, n_frames=20)
    large = encode(tmp_path / "large.ts", **X264, n_frames=20, size=(640, 480))
    small.write_bytes(small.read_bytes() + large.read_bytes())
    reader = VideoReader(small, max_pixels=64 * 48 + 1000)
    assert reader[19].shape == (48, 64, 3)
    assert reader._source.video._codec.width < 640


def test_frames_are_freed_without_the_cycle_collector(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mp4", size=(1024, 768), preset="ultrafast")
    reader = VideoReader(path)
    gc.disable()
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(N_FRAMES):
            reader[number].sum()
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    finally:
        gc.enable()
    assert grown_mb < 70, "40 frames of 3.4 MB were kept, and not the few of the cache"
