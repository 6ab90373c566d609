"""One open video file: the packets of its best video stream, and one decoder with one thread.

A bad file is a VideoError when it is opened; later it is the end of the packets, or no image, and `fault` says why.
FFmpeg's want of memory is a MemoryError wherever it shows.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import av
from av.codec.context import ThreadType
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

if TYPE_CHECKING:
    VideoPacket: TypeAlias = Packet[VideoStream]
else:
    VideoPacket = Packet  # PyAV's class takes its argument in the stubs only

_MAKE_UP_TIMES = 1
"""AVFMT_FLAG_GENPTS: AVI stores no times of presentation."""
_DRAWS_TEXT = {"ansi", "bintext", "idf", "xbin"}
"""Codecs with which FFmpeg plays any text file as a film."""
_COUNTED_AS_STORED = {"h264", "hevc"}


class VideoError(RuntimeError):
    """The file is not a video that can be read, or a frame of it is damaged."""


class VideoFile:
    """An open video. `file` is a path or an open file. Raises VideoError, or the OSError of opening it."""

    def __init__(self, file: str | IO[bytes], *, max_pixels: int) -> None:
        self.name = file if isinstance(file, str) else "the file"
        self.fault: Exception | None = None
        self.needed_from: int | None = None
        """Time before which images that no other one refers to need not come out of the decoder."""
        try:
            self._container = _open(file)
        except av.FFmpegError as error:
            _unless_memory(error)
            raise VideoError(f"{self.name} is not a video that can be read: {error.strerror}") from error
        self.stream = self._best_stream()
        self._codec = self.stream.codec_context
        self._limit(max_pixels)
        self.codec_name = self._codec.name
        self.counts_as_stored = self._container.format.name == "avi" and self.codec_name in _COUNTED_AS_STORED
        """AVI holds no times of presentation. FFmpeg finds them for old codecs; for these it numbers as it reads."""
        self.size = (self.stream.width, self.stream.height)
        """Width and height of the stored image, before it is turned."""
        self.seconds_per_tick = float(self.stream.time_base or 0)
        self.frames_per_second = float(self.stream.average_rate or 0)
        """0 where the file does not tell."""

    def close(self) -> None:
        self._container.close()

    def packets(self) -> Iterator[VideoPacket]:
        """Packets from the present position to the end, or to the error in a damaged file."""
        try:
            for packet in self._container.demux(self.stream):
                if packet.size:
                    yield packet
        except av.FFmpegError as error:
            self.fault = _unless_memory(error)
        except IndexError as error:  # PyAV, at the end, where a stream has appeared that was not there at the start
            self.fault = error

    def seek(self, time: int) -> bool:
        """Go to a key frame, and hardly to a later one than that at `time`. False where the container cannot."""
        try:
            self._container.seek(time, stream=self.stream)
        except av.FFmpegError as error:
            _unless_memory(error)
            return False
        return True

    def decode(self, packet: VideoPacket | None) -> list[VideoFrame]:
        """The images that this packet completes, in order of presentation; None asks for the last ones."""
        time = None if packet is None else packet.pts
        is_early = time is not None and self.needed_from is not None and time < self.needed_from
        self._codec.skip_frame = "NONREF" if is_early else "DEFAULT"
        try:
            return self._codec.decode(packet)
        except av.FFmpegError as error:
            self.fault = _unless_memory(error)
            return []

    def images(self, packets: Iterable[VideoPacket]) -> Iterator[VideoFrame]:
        """Decode these packets, to the last image."""
        return (image for packet in chain(packets, [None]) for image in self.decode(packet))

    def _best_stream(self) -> VideoStream:
        stream = self._container.streams.best("video")
        if not isinstance(stream, VideoStream) or stream.disposition & Disposition.attached_pic:
            raise VideoError(f"{self.name} has no video stream")
        codec: Any = stream.codec_context  # None where this FFmpeg has no decoder, which the stubs leave out
        if codec is None or codec.name in _DRAWS_TEXT:
            raise VideoError(f"{self.name} is not a video that can be read: codec {codec and codec.name}")
        return stream

    def _limit(self, max_pixels: int) -> None:
        width, height = self.stream.width, self.stream.height
        if width * height > max_pixels:
            raise VideoError(f"{self.name} has {width}x{height} pixels per frame, more than {max_pixels}")
        # the size may change within the stream: the decoder itself must refuse
        self._codec.options = {"max_pixels": str(max_pixels)}
        # the default is a thread per core: a session has a small budget of them, and its one core is shared
        self._codec.thread_count, self._codec.thread_type = 1, ThreadType.NONE


def _open(file: str | IO[bytes]) -> InputContainer:
    name: Any = file
    if isinstance(file, str):
        name = f"file:{file}"  # a path is a path, whatever it looks like
        if os.path.exists(file) and not os.path.isfile(file):
            raise VideoError(f"{file} is not a file")  # a pipe would be waited for
        open(file, "rb").close()  # what cannot be opened raises here: FFmpeg has OSErrors for damage, too
    else:
        file.seek(0)
    # the white list: no playlist leads to the network
    options = {"protocol_whitelist": "file"}
    container: InputContainer = av.open(name, "r", container_options=options, metadata_errors="replace")
    container.flags |= _MAKE_UP_TIMES
    return container


def _unless_memory(error: av.FFmpegError) -> Exception:
    if isinstance(error, MemoryError):
        raise MemoryError("not enough memory to decode the video") from error
    return error


_VP8_SHOWN = 0x10


class KeyPacket(NamedTuple):
    """A place where decoding can start."""

    pts: int
    dts: int | None
    frame: int
    """Its number; where an edit list hides it, the first frame after it."""


@dataclass(frozen=True)
class FrameIndex:
    """Times are in units of the stream's time base."""

    pts: "array[int]"
    """Ascending. Equal ones are different frames."""
    durations: "array[int]"
    keys: list[KeyPacket]
    """Ascending by pts, never empty where there are frames."""
    numbers: dict[int, int] | None = None
    """From a packet's time to its frame, where the order of these times is not that of the frames."""

    def __len__(self) -> int:
        return len(self.pts)

    def number_of(self, pts: int | None, after: int) -> int | None:
        """The frame with this time; `after` is the one decoded before it, which tells frames of equal time apart."""
        if pts is None:
            return None
        if self.numbers is not None:
            return self.numbers.get(pts)
        number = bisect_left(self.pts, pts)
        if number <= after < len(self) - 1 and self.pts[after] == pts:
            number = after + 1
        return number if number < len(self) and self.pts[number] == pts else None

    def starts_for(self, number: int) -> list[KeyPacket]:
        """Key frames to start from: the one at or before a frame, then the one before that (B-frames)."""
        last = bisect_right(self.keys, number, key=lambda key: key.frame)
        return self.keys[max(last - 2, 0) : last][::-1]

    def in_order_of(self, image_times: Iterable[int | None]) -> "FrameIndex":
        """The same packets, where only the decoder knows the order: `shown` is the times of its images."""
        numbers = {pts: number for number, pts in enumerate(pts for pts in image_times if pts is not None)}
        keys = [key._replace(frame=numbers[key.pts]) for key in self.keys if key.pts in numbers]
        return FrameIndex(array("q", sorted(numbers)), self.durations[: len(numbers)], keys, numbers)


def read_index(packets: Iterable["Packet[VideoStream]"], codec: str) -> FrameIndex:
    """Index the frames. Raises ValueError where packets carry no time, which tells frames apart."""
    frame_times, keys = list[tuple[int, int]](), list[tuple[int, int | None]]()
    for packet in packets:
        if packet.pts is None:
            raise ValueError("its frames carry no times (a raw stream): put it into a container such as mp4 or mkv")
        if packet.is_keyframe:
            keys.append((packet.pts, packet.dts))
        is_hidden = packet.is_discard or (codec == "vp8" and not memoryview(packet)[0] & _VP8_SHOWN)
        if keys and packet.pts >= keys[0][0] and not is_hidden:
            frame_times.append((packet.pts, packet.duration or 0))
    frame_times.sort(key=lambda times: times[0])  # stable: equal times stay in the order of the file
    pts = array("q", (time for time, _ in frame_times))
    key_packets = [KeyPacket(time, dts, bisect_left(pts, time)) for time, dts in keys]
    durations = array("q", (duration for _, duration in frame_times))
    return FrameIndex(pts, durations, sorted(key_packets, key=lambda key: key.pts))
