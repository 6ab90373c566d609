"""One open video file: the packets of its best video stream, and one decoder with one thread.

What is wrong with the file becomes a VideoError when it is opened, and the end of the packets, or no picture, later:
`fault` then says why. FFmpeg's want of memory is a MemoryError wherever it shows.
"""

import os
from collections.abc import Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypeAlias

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
    """Raises VideoError, or the OSError of a file that cannot be opened. `file` is a path or an open file."""

    def __init__(self, file: str | IO[bytes], *, max_pixels: int) -> None:
        self.name = file if isinstance(file, str) else "the file"
        self.fault: Exception | None = None
        self.needed_from: int | None = None
        """Time before which pictures that no other one refers to need not come out of the decoder."""
        try:
            self._container = _open(file)
        except av.FFmpegError as error:
            _unless_memory(error)
            raise VideoError(f"{self.name} is not a video that can be read: {error.strerror}") from error
        self._stream = self._best_stream()
        self._codec = self._stream.codec_context
        self._limit(max_pixels)
        self.codec_name = self._codec.name
        self.counts_as_stored = self._container.format.name == "avi" and self.codec_name in _COUNTED_AS_STORED
        """AVI holds no times of presentation. FFmpeg finds them for old codecs; for these it numbers as it reads."""
        self.size = (self._stream.width, self._stream.height)
        """Width and height of the stored picture, before it is turned."""
        self.seconds_per_tick = float(self._stream.time_base or 0)
        self.frames_per_second = float(self._stream.average_rate or 0)
        """0 where the file does not tell."""

    def close(self) -> None:
        self._container.close()

    def packets(self) -> Iterator[VideoPacket]:
        """From the present place to the end, or to the fault in a damaged file."""
        try:
            for packet in self._container.demux(self._stream):
                if packet.size:
                    yield packet
        except av.FFmpegError as error:
            self.fault = _unless_memory(error)
        except IndexError as error:  # PyAV, at the end, where a stream has appeared that was not there at the start
            self.fault = error

    def seek(self, time: int) -> bool:
        """Go to a key frame, and hardly to a later one than that at `time`. False where the container cannot."""
        try:
            self._container.seek(time, stream=self._stream)
        except av.FFmpegError as error:
            _unless_memory(error)
            return False
        return True

    def decode(self, packet: VideoPacket | None) -> list[VideoFrame]:
        """The pictures that this packet completes, in order of presentation; None asks for the last ones."""
        time = None if packet is None else packet.pts
        is_early = time is not None and self.needed_from is not None and time < self.needed_from
        self._codec.skip_frame = "NONREF" if is_early else "DEFAULT"
        try:
            return self._codec.decode(packet)
        except av.FFmpegError as error:
            self.fault = _unless_memory(error)
            return []

    def images(self) -> Iterator[VideoFrame]:
        """Decode from the present place to the end."""
        return (image for packet in chain(self.packets(), [None]) for image in self.decode(packet))

    def _best_stream(self) -> VideoStream:
        stream = self._container.streams.best("video")
        if not isinstance(stream, VideoStream) or stream.disposition & Disposition.attached_pic:
            raise VideoError(f"{self.name} has no video stream")
        codec: Any = stream.codec_context  # None where this FFmpeg has no decoder, which the stubs leave out
        if codec is None or codec.name in _DRAWS_TEXT:
            raise VideoError(f"{self.name} is not a video that can be read: codec {codec and codec.name}")
        return stream

    def _limit(self, max_pixels: int) -> None:
        width, height = self._stream.width, self._stream.height
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
        open(file, "rb").close()  # what cannot be opened is told here: FFmpeg has OSErrors for damage, too
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
