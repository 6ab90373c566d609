"""Videos, as model-written code reads them: decord's `VideoReader` over PyAV, since decord's last release is of 2021.

    video_clue_0[100].asnumpy()                          # (H, W, 3) uint8, RGB
    video_clue_0.get_batch([0, 10, 20]).asnumpy()        # (3, H, W, 3)

Differences from decord: every access is exact; frames are numpy arrays that also have `asnumpy()`; one thread decodes,
always on the CPU; a frame in a damaged part is an error and no copy of its neighbour. Not covered: raw streams without
times, audio, `VideoLoader`, other bridges. A file is opened at its first use, within the session.
"""

import operator
import os
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from darkroom.sandbox._guest.video_frames import FrameSource

MAX_PIXELS = 50_000_000
"""Largest frame, in pixels: what Limits.max_pixels has for images."""


class NDArray(np.ndarray[Any, np.dtype[np.uint8]]):
    """A frame (H, W, 3) or a batch (N, H, W, 3), uint8, RGB: a numpy array with the method that decord's has."""

    def asnumpy(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        return self.view(np.ndarray)


class Context(NamedTuple):
    """Device on which decord would decode; here the CPU does in any case."""

    device_type: str
    device_id: int


def cpu(dev_id: int = 0) -> Context:
    return Context("cpu", dev_id)


def gpu(dev_id: int = 0) -> Context:
    return Context("gpu", dev_id)


class VideoReader:
    """The frames of a video file, in order of presentation. `ctx`, `num_threads` and `fault_tol` have no effect. Raises
    VideoError (a RuntimeError), or OSError where the file cannot be opened; with `lazy` at the first use."""

    def __init__(
        self,
        uri: str | os.PathLike[str] | IO[bytes],
        ctx: object = None,
        width: int = -1,
        height: int = -1,
        num_threads: int = 0,
        fault_tol: int = -1,
        *,
        max_pixels: int = MAX_PIXELS,
        lazy: bool = False,
    ) -> None:
        if width * height > max_pixels:
            raise ValueError(f"{width}x{height} pixels per frame are more than {max_pixels}")
        self._file = os.fspath(uri) if isinstance(uri, str | os.PathLike) else uri
        self._size, self._max_pixels = (width, height), max_pixels
        self._position = 0
        if not lazy:
            self._source  # noqa: B018 - a bad file raises here

    @cached_property
    def _source(self) -> "FrameSource":
        # PyAV is a tenth of a second, which few sessions need
        from darkroom.sandbox._guest.video_frames import FrameSource

        return FrameSource(self._file, max_pixels=self._max_pixels)

    def __len__(self) -> int:
        return len(self._source.index)

    def __getitem__(self, index: Any) -> NDArray:
        if not hasattr(index, "__index__") or np.ndim(index):
            return self.get_batch(index)
        self.seek_accurate(self._checked(operator.index(index)))
        return self.next()

    def next(self) -> NDArray:
        """The frame at the position. Raises StopIteration at the end."""
        if self._position >= len(self):
            raise StopIteration
        frame = self._source.rgb(self._position, self._size).view(NDArray)
        self._position += 1
        return frame

    def get_batch(self, indices: Any) -> NDArray:
        """(N, H, W, 3), in the order asked for. Decoded in the order of the file, each frame once."""
        numbers = self._numbers(indices)
        first = self._source.rgb(int(numbers.min()) if len(numbers) else 0, self._size)
        batch = np.empty((len(numbers), *first.shape), np.uint8)
        for number in np.unique(numbers):
            batch[numbers == number] = self._source.rgb(int(number), self._size)
        if len(numbers):
            self._position = int(numbers[-1]) + 1
        return batch.view(NDArray)

    def seek(self, pos: int) -> None:
        """The same as `seek_accurate`: decord's may come out at a key frame nearby."""
        self._position = self._checked(pos)

    seek_accurate = seek

    def skip_frames(self, num: int = 1) -> None:
        self._position = min(self._position + num, len(self))

    def get_avg_fps(self) -> float:
        video, pts = self._source.video, self._source.index.pts
        seconds = (pts[-1] - pts[0]) * video.seconds_per_tick
        return video.frames_per_second or ((len(pts) - 1) / seconds if seconds else 0.0)

    def get_key_indices(self) -> list[int]:
        """Frames at which decoding can start, ascending."""
        return sorted({key.frame for key in self._source.index.keys})

    def get_frame_timestamp(self, idx: Any) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """Start and end in seconds: (2,) for a number, (N, 2) for a list or a slice. The video starts at 0."""
        times = self._times[self._numbers(idx)]
        return times if isinstance(idx, slice) or np.ndim(idx) else np.asarray(times[0])

    @cached_property
    def _times(self) -> "np.ndarray[Any, np.dtype[np.float32]]":
        index, tick = self._source.index, self._source.video.seconds_per_tick
        starts, durations = np.array(index.pts), np.array(index.durations)
        gaps = np.diff(starts)
        gaps = np.append(gaps, gaps[-1:] if len(gaps) else 0)  # some containers tell no durations
        ends = starts + np.where(durations > 0, durations, gaps)
        return np.stack([starts - starts[0], ends - starts[0]], axis=1).astype(np.float32) * np.float32(tick)

    def _checked(self, number: int) -> int:
        if not -len(self) <= number < len(self):
            raise IndexError(f"frame {number} is out of range: the video has {len(self)} frames")
        return number % len(self)

    def _numbers(self, indices: Any) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Read them like decord: floats (np.linspace) are cut off, negative ones count from the end."""
        if isinstance(indices, slice):
            indices = range(*indices.indices(len(self)))
        numbers = np.atleast_1d(np.array(indices, dtype=np.int64))
        return np.array([self._checked(int(number)) for number in numbers.ravel()], np.int64)


def names_of_videos(paths: list[str], *, max_pixels: int = MAX_PIXELS) -> dict[str, object]:
    """The variables that the code finds: video_path, video_path_0, video_clue_0, … Nothing is opened yet."""
    names: dict[str, object] = {"video_path": paths[0]} if paths else {}
    for index, path in enumerate(paths):
        names[f"video_path_{index}"] = path
        names[f"video_clue_{index}"] = VideoReader(path, max_pixels=max_pixels, lazy=True)
    return names


def install_decord_alias() -> None:
    """Make `import decord` give this reader, where the package is not installed."""
    # the host reads videos, too, without the libraries of the code
    from darkroom.sandbox._guest.patched_modules import provide

    bridge: dict[str, Any] = {"set_bridge": _set_bridge, "reset_bridge": lambda: None}
    levels = {"QUIET": -8, "PANIC": 0, "FATAL": 8, "ERROR": 16, "WARNING": 24, "INFO": 32}
    readers = {"VideoReader": VideoReader, "cpu": cpu, "gpu": gpu, "DECORDError": RuntimeError, "__version__": "0.6.0"}
    provide("decord", readers, bridge=bridge, logging={"set_level": lambda _level: None, **levels})


def _set_bridge(new_bridge: str) -> None:
    if new_bridge not in ("native", "numpy"):
        raise ValueError(f"decord's bridge to {new_bridge} is not here: frames are numpy arrays (bridge 'native')")
