"""Every frame that the reader gives is the one that a full decode gives there, whatever was asked for before."""

import io
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from darkroom.sandbox._guest.video import NDArray, VideoReader, cpu, gpu, install_decord_alias, names_of_videos
from tests.sandbox.clips import FRAMES_PER_SECOND, N_FRAMES, STEP, X264, encode

VARIABLE_TIMES = [0, *np.cumsum(np.random.default_rng(5).choice([1, 7, 40, 500], N_FRAMES - 1)).tolist()]
OPEN_GOP = {"x264-params": "open-gop=1:keyint=12:bframes=3:scenecut=0:b-adapt=0"}


def remux(source: Path, target: Path, *, n_dropped: int = 0, earlier_by: float = 0.0) -> Path:
    """The same packets without the first few, or with times that begin before zero (which mp4 cuts by an edit list)."""
    with av.open(source) as old, av.open(target, "w") as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        shift = int(earlier_by / stream.time_base)
        for number, packet in enumerate(old.demux(stream)):
            if (packet.dts is None and packet.pts is None) or number < n_dropped:
                continue
            packet.pts -= shift
            if packet.dts is not None:
                packet.dts -= shift
            packet.stream = copy
            new.mux(packet)
    return target


def decoded(path: Path) -> list[np.ndarray]:
    """All pictures as they come, from the first key frame on, by the plainest decoding there is."""
    with av.open(path) as container:
        container.flags |= 1  # AVFMT_FLAG_GENPTS
        stream = container.streams.best("video")
        stream.thread_count = 1
        frames = [(frame.pts, frame.key_frame, frame.to_ndarray(format="rgb24")) for frame in container.decode(stream)]
    first = next((pts for pts, is_key, _ in frames if is_key), 0)
    return [pixels for pts, _, pixels in frames if pts >= first]


Maker = Callable[[Path], Path]
CLIPS: dict[str, Maker] = {
    "h264, B-frames, short groups": lambda p: encode(p / "a.mp4", **X264, g="12"),
    "h264, one key frame": lambda p: encode(p / "a.mkv", **X264, g="250"),
    "h264, groups shorter than the delay": lambda p: encode(p / "a.mp4", **X264, g="3"),
    "h264, open groups, mkv": lambda p: encode(p / "a.mkv", **OPEN_GOP),
    "h264, open groups, ts": lambda p: encode(p / "a.ts", **OPEN_GOP),
    "h264 in avi, which stores no times": lambda p: encode(p / "a.avi", **X264, g="12"),
    "h264, variable rate": lambda p: encode(p / "a.mp4", **X264, g="12", times=VARIABLE_TIMES),
    "h264, odd size": lambda p: encode(p / "a.mp4", pixels="yuv444p", size=(63, 47), preset="ultrafast"),
    "h264, first key frame missing": lambda p: remux(encode(p / "a.mkv", **OPEN_GOP), p / "b.mkv", n_dropped=5),
    "h264, edit list": lambda p: remux(encode(p / "a.mp4", **X264, g="250"), p / "b.mp4", earlier_by=0.36),
    "h264 beside audio": lambda p: encode(p / "a.mp4", **X264, g="12", with_audio=True),
    "hevc, open groups": lambda p: encode(
        p / "a.mp4", "libx265", **{"x265-params": "keyint=12:open-gop=1:bframes=3:scenecut=0:pools=none:log-level=-1"}
    ),
    "mpeg4, B-frames, avi": lambda p: encode(p / "a.avi", "mpeg4", bf="2", g="12"),
    "mpeg2, program stream": lambda p: encode(p / "a.mpg", "mpeg2video", bf="2", g="12"),
    "vp8": lambda p: encode(p / "a.webm", "libvpx", g="12", deadline="realtime"),
    "vp9": lambda p: encode(p / "a.webm", "libvpx-vp9", g="12", deadline="realtime", **{"cpu-used": "8"}),
    "mjpeg": lambda p: encode(p / "a.avi", "mjpeg", pixels="yuvj420p"),
    "gif": lambda p: encode(p / "a.gif", "gif", pixels="rgb8"),
}


@pytest.fixture(scope="module", params=CLIPS, ids=list(CLIPS))
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return CLIPS[request.param](tmp_path_factory.mktemp("clip"))


def test_any_order_of_access_gives_the_frames_of_a_full_decode(clip: Path) -> None:
    frames, reader = decoded(clip), VideoReader(str(clip))
    assert len(reader) == len(frames)
    numbers = list(range(len(reader))) * 2
    random.Random(4).shuffle(numbers)
    assert [number for number in numbers if not np.array_equal(reader[number], frames[number])] == []


def test_access_without_a_cache_is_as_exact(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkroom.sandbox._guest.video_frames._CACHED_FRAMES", 1)
    frames, reader = decoded(clip), VideoReader(str(clip))
    wrong = [number for number in reversed(range(len(reader))) if not np.array_equal(reader[number], frames[number])]
    assert wrong == []


def test_frame_i_shows_picture_i(mp4: Path, reader: VideoReader) -> None:
    brightness = [frame[:, :24].mean() / STEP for frame in reader]
    assert np.abs(np.array(brightness) - np.arange(N_FRAMES)).max() < 0.5


def test_reading_on_does_not_seek(reader: VideoReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader._source, "_seek", lambda _key: pytest.fail("seeks"))
    assert len([reader[number] for number in range(N_FRAMES)]) == N_FRAMES


def test_a_frame_is_a_writable_array_of_its_own(reader: VideoReader) -> None:
    frame = reader[3]
    assert isinstance(frame, NDArray)
    assert type(frame.asnumpy()) is np.ndarray
    assert (frame.shape, frame.dtype, len(frame)) == ((48, 64, 3), np.uint8, 48)
    frame.asnumpy()[:] = 0
    assert reader[3].asnumpy().any()


def test_frames_go_to_pillow_and_matplotlib(reader: VideoReader) -> None:
    assert Image.fromarray(np.asarray(reader[0])).size == (64, 48)
    assert Image.fromarray(reader[0].asnumpy()).size == (64, 48)
    plt.imshow(reader[0])
    plt.close("all")


def test_negative_numbers_count_from_the_end(reader: VideoReader) -> None:
    assert np.array_equal(reader[-1], reader[N_FRAMES - 1])


@pytest.mark.parametrize("number", [N_FRAMES, -N_FRAMES - 1])
def test_a_number_out_of_range_names_the_length(reader: VideoReader, number: int) -> None:
    with pytest.raises(IndexError, match=f"{number} is out of range: the video has 40 frames"):
        reader[number]
    with pytest.raises(IndexError, match="40 frames"):
        reader.get_batch([0, number])


def test_batches_keep_the_order_and_the_repetitions_that_were_asked_for(reader: VideoReader) -> None:
    batch = reader.get_batch([30, 2, 2, -1]).asnumpy()
    assert batch.shape == (4, 48, 64, 3)
    assert all(np.array_equal(frame, reader[number]) for frame, number in zip(batch, [30, 2, 2, 39], strict=True))


def test_slices_lists_and_floats_are_batches(reader: VideoReader) -> None:
    assert reader[30:20:-5].shape == (2, 48, 64, 3)
    assert np.array_equal(reader[[0, 39]], reader.get_batch(np.linspace(0, 39.9, 2)))
    assert np.array_equal(reader[np.int64(7)], reader[7])
    assert reader.get_batch([]).shape == (0, 48, 64, 3)


def test_next_seek_and_skip_move_the_position(reader: VideoReader) -> None:
    reader.next()
    reader.skip_frames(2)
    assert np.array_equal(reader.next(), reader[3])
    assert np.array_equal(reader.next(), reader[4])
    reader.seek_accurate(38)
    reader.seek(39)
    reader.next()
    with pytest.raises(StopIteration):
        reader.next()


def test_times_are_in_seconds_from_the_first_frame(tmp_path: Path) -> None:
    reader = VideoReader(encode(tmp_path / "a.mp4", **X264, times=VARIABLE_TIMES))
    seconds = np.array(VARIABLE_TIMES) / 1000
    assert np.allclose(reader.get_frame_timestamp(slice(None))[:, 0], seconds)
    assert np.allclose(reader.get_frame_timestamp([0, 1])[:, 1], seconds[1:3])
    assert reader.get_frame_timestamp(5).shape == (2,)


def test_average_rate_and_key_frames(reader: VideoReader) -> None:
    assert reader.get_avg_fps() == FRAMES_PER_SECOND
    assert reader.get_key_indices() == [0, 12, 24, 36]


@pytest.mark.parametrize(("degrees", "turns"), [(90, 1), (-90, 3), (180, 2)])
def test_frames_are_turned_as_the_file_says(tmp_path: Path, degrees: int, turns: int) -> None:
    flat = VideoReader(encode(tmp_path / "flat.mp4", **X264, n_frames=3))
    turned = VideoReader(encode(tmp_path / "turned.mp4", **X264, n_frames=3, rotation=degrees))
    assert np.array_equal(turned[2], np.rot90(flat[2], turns))


def test_width_and_height_are_those_of_the_shown_picture(tmp_path: Path) -> None:
    path = encode(tmp_path / "a.mp4", **X264, n_frames=3, rotation=90)
    assert VideoReader(path, width=20, height=32).get_batch([0, 1]).shape == (2, 32, 20, 3)
    assert VideoReader(path, width=20)[0].shape == (64, 20, 3)


def test_the_arguments_of_decord_are_accepted(mp4: Path) -> None:
    assert len(VideoReader(str(mp4), ctx=cpu(0), num_threads=4, fault_tol=3)) == N_FRAMES
    assert len(VideoReader(str(mp4), gpu(0), 32, 24)) == N_FRAMES


def test_an_open_file_is_read_like_a_path(mp4: Path, reader: VideoReader) -> None:
    from_memory = VideoReader(io.BytesIO(mp4.read_bytes()))
    assert all(np.array_equal(from_memory[number], reader[number]) for number in (30, 3, 39))


def test_no_thread_is_started(mp4: Path) -> None:
    code = f"""
import os
from darkroom.sandbox._guest.video import VideoReader
import darkroom.sandbox._guest.video_frames
threads = [len(os.listdir("/proc/self/task"))]
reader = VideoReader({str(mp4)!r}, width=32, height=24)
reader.get_batch([30, 1])
print(*threads, len(os.listdir("/proc/self/task")))
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


def test_videos_are_opened_at_their_first_use(mp4: Path) -> None:
    names = names_of_videos([str(mp4), "none.mp4"])
    assert list(names) == ["video_path", "video_path_0", "video_clue_0", "video_path_1", "video_clue_1"]
    assert (names["video_path"], names["video_path_1"]) == (str(mp4), "none.mp4")
    assert len(names["video_clue_0"]) == N_FRAMES
    with pytest.raises(FileNotFoundError):
        len(names["video_clue_1"])


@pytest.fixture
def no_decord(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {name for name in sys.modules if name.startswith("decord")}
    yield
    for name in [name for name in sys.modules if name.startswith("decord") and name not in before]:
        del sys.modules[name]


def test_code_that_imports_decord_finds_this_reader(mp4: Path, no_decord: None) -> None:
    install_decord_alias()
    install_decord_alias()
    names: dict[str, object] = {}
    exec("import decord\nfrom decord import VideoReader, cpu, gpu\nfrom decord.bridge import set_bridge", names)
    exec("decord.bridge.set_bridge('native')\ndecord.logging.set_level(decord.logging.ERROR)", names)
    exec(f"frames = decord.VideoReader({str(mp4)!r}, ctx=cpu(0)).get_batch([0, 1]).asnumpy()", names)
    assert names["frames"].shape == (2, 48, 64, 3)
    with pytest.raises(ValueError, match="torch is not here"):
        exec("set_bridge('torch')", names)


def test_a_real_decord_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    real = type(sys)("decord")
    monkeypatch.setitem(sys.modules, "decord", real)
    install_decord_alias()
    assert sys.modules["decord"] is real
