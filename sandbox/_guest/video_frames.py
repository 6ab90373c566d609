"""Finds any frame of a video file, exactly: from the key frame at or before it, forward. FFmpeg's seeking is a hint, so
the time of what comes out of the decoder counts, and a start that missed is repeated from further back."""

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, NamedTuple, cast

import cv2
import numpy as np
from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from darkroom.sandbox._guest.video_file import FrameIndex, KeyPacket, VideoError, VideoFile, VideoPacket, read_index


class Turn(NamedTuple):
    """Turn from the stored image to the shown one: transposed first, then mirrored."""

    transposed: bool
    mirrored: bool
    upside_down: bool

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Size of the shown image, from that of the stored one, or back."""
        return size[::-1] if self.transposed else size

    def apply(self, pixels: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        if self.transposed:
            pixels = cv2.transpose(pixels)
        if self.mirrored or self.upside_down:
            pixels = cv2.flip(pixels, -1 if self.mirrored and self.upside_down else int(self.mirrored))
        return np.require(pixels, requirements=["C", "W"])


def turn_of(image: VideoFrame) -> Turn:
    """Turn of the display matrix, rows (a, b, u), (c, d, v), (x, y, w): x' = ax + cy, y' = bx + dy. Angles other than
    quarter turns are ignored, as are the matrix's place and scale."""
    data = cast(dict[Type, bytes], image.side_data).get(Type.DISPLAYMATRIX)
    a, b, _, c, d = array("i", bytes(data))[:5] if data else (1, 0, 0, 0, 1)
    if a == d == 0 and b and c:
        return Turn(True, c < 0, b < 0)
    if b == c == 0 and a and d:
        return Turn(False, a < 0, d < 0)
    return Turn(False, False, False)


_CACHED_BYTES = 48 << 20
_CACHED_FRAMES = 24


class _Frame(NamedTuple):
    number: int
    image: VideoFrame


_NO_FRAME = _Frame(-1, VideoFrame())


class FrameSource:
    """Frames of a file's best video stream, not for both sides of a fork. Raises VideoError, or OSError."""

    def __init__(self, file: str | IO[bytes], *, max_pixels: int) -> None:
        self._file, self._max_pixels = file, max_pixels
        self.video = VideoFile(file, max_pixels=max_pixels)
        self.index = _read_index(self.video)
        width, height = self.video.size
        self._n_cached = min(max(_CACHED_BYTES * 2 // (3 * width * height + 1), 1), _CACHED_FRAMES)
        self._cache = OrderedDict[int, VideoFrame]()
        self._reformatter = VideoReformatter()
        self._turn: Turn | None = None
        self._last = _NO_FRAME
        self._decoded: Iterator[_Frame] = iter(())
        self._start_over()
        if self.video.counts_as_stored:
            self.index = self.index.in_order_of(image.pts for image in self.video.images(self.video.packets()))
            self._start_over()

    def frame(self, number: int) -> VideoFrame:
        """Decode a frame as it is stored. Raises VideoError where the file is damaged there."""
        image = self._cache.get(number) or self._find(number)
        self._keep(_Frame(number, image))
        return image

    def rgb(self, number: int, size: tuple[int, int] = (-1, -1)) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """(H, W, 3), fresh memory, as a player shows it: turned as the file says, pixels taken to be square. `size` is
        (W, H) of what is returned; -1 keeps the side as it is."""
        image = self.frame(number)
        # once: a frame that was asked for its notes is freed by the cycle collector only
        turn = self._turn = self._turn or turn_of(image)
        shown_size = turn.size(self.video.size)
        width, height = turn.size(
            (size[0] if size[0] > 0 else shown_size[0], size[1] if size[1] > 0 else shown_size[1])
        )
        # one thread: by default swscale starts one per core
        packed = self._reformatter.reformat(image, width, height, "rgb24", threads=1)
        return turn.apply(packed.to_ndarray())

    def _find(self, number: int) -> VideoFrame:
        starts, last = self.index.starts_for(number), self._last.number
        # no key frame lies between here and there: to decode on is no detour
        if last < number and starts[0].frame <= last + 1 and (image := self._run_to(number)):
            return image
        for key in starts:
            self._seek(key)
            if image := self._run_to(number):
                return image
        self._start_over()
        if image := self._run_to(number, damaged=True):
            return image
        raise VideoError(f"frame {number} of {self.video.name} cannot be decoded{_because(self.video.fault)}")

    def _run_to(self, number: int, *, damaged: bool = False) -> VideoFrame | None:
        """Decode on to a frame; None where it does not come, or comes damaged, as after a start at the wrong place. If
        `damaged`, the best there is: where the file codes no image, the one before it stays on the screen."""
        before = self._last
        self.video.needed_from = self.index.pts[0 if damaged else max(number - self._n_cached, 0)]
        for frame in self._decoded:
            self._last = frame
            if damaged or not frame.image.is_corrupt:
                self._keep(frame)
            if frame.number == number:
                return frame.image if damaged or not frame.image.is_corrupt else None
            if frame.number > number:
                break
            before = frame
        return before.image if damaged and before.number >= 0 and self.video.fault is None else None

    def _keep(self, frame: _Frame) -> None:
        self._cache[frame.number] = frame.image
        self._cache.move_to_end(frame.number)
        while len(self._cache) > self._n_cached:
            self._cache.popitem(last=False)

    def _seek(self, key: KeyPacket) -> None:
        """Go to a key frame or before it. Containers seek by either of its times: the packet that comes tells."""
        for time in (key.pts, key.dts):
            if time is not None and self.video.seek(time):
                packets = self.video.packets()
                if (first := next(packets, None)) is not None and _is_at_or_before(first, key):
                    self._decode_from(chain([first], packets))
                    return
        self._start_over()

    def _start_over(self) -> None:
        """The one place that is sure in every container, even in those that cannot seek."""
        old, self.video = self.video, VideoFile(self._file, max_pixels=self._max_pixels)
        old.close()  # last: an interruption must not leave a closed file behind
        self._decode_from(self.video.packets())

    def _decode_from(self, packets: Iterator[VideoPacket]) -> None:
        self.video.fault, self._last = None, _NO_FRAME
        self._decoded = _decode(self.video, self.index, packets)


def _decode(video: VideoFile, index: FrameIndex, packets: Iterator[VideoPacket]) -> Iterator[_Frame]:
    """Decode frames. No method: a generator that its own object holds would keep its frames until a collection."""
    last = -1
    for image in video.images(packets):
        if (number := index.number_of(image.pts, last)) is not None:
            last = number
            yield _Frame(number, image)


def _read_index(video: VideoFile) -> FrameIndex:
    try:
        index = read_index(video.packets(), video.codec_name)
    except ValueError as error:
        raise VideoError(f"{video.name} cannot be indexed: {error}") from error
    if not len(index):
        raise VideoError(f"{video.name} has no frames{_because(video.fault)}")
    return index


def _is_at_or_before(packet: VideoPacket, key: KeyPacket) -> bool:
    if packet.is_keyframe and packet.pts is not None:
        return packet.pts <= key.pts
    return packet.dts is not None and packet.dts <= (key.pts if key.dts is None else key.dts)


def _because(fault: Exception | None) -> str:
    return f": {getattr(fault, 'strerror', fault)}" if fault else ""
