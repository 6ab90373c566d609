"""What a video file really is: probed before it is trusted, with the very reader that the sandbox reads it with.

So the number of frames that a policy is told is the one that its code finds, and each of them decodes. Refused with a
reason: 0 bytes, no video in one of ``FORMATS`` (FFmpeg would follow a playlist to other files), a frame that does not
decode, more than the limits. Videos keep the bytes they came in; nothing is derived.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

import sandbox
from pipelines.rejects import Reason, RowFault
from sandbox._guest.video import VideoReader
from sandbox._guest.video_frames import FrameSource

MAX_BYTES = 512 * 2**20
MAX_FRAMES = 36_000
"""Twenty minutes at 30 frames per second: every frame is decoded on the way in."""
MAX_PIXELS = sandbox.Limits.max_pixels
"""Of a frame: what the sandbox can open."""

FORMATS = {
    "mov,mp4,m4a,3gp,3g2,mj2": "mp4",
    "matroska,webm": "mkv",
    "avi": "avi",
    "mpegts": "ts",
    "mpeg": "mpg",
    "flv": "flv",
    "asf": "wmv",
    "ogg": "ogv",
}
"""FFmpeg's readers that may look at a file, and how a file of each kind is called."""

Thumbnails = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ProbedVideo:
    """A video all of whose frames decode. ``fps``: frames per second on average, 0 where nobody can tell."""

    format: str
    width: int
    height: int
    n_frames: int
    fps: float


def probe_video(
    data: bytes, *, max_bytes: int = MAX_BYTES, max_frames: int = MAX_FRAMES, max_pixels: int = MAX_PIXELS
) -> ProbedVideo:
    """Decodes ``data`` fully. Raises ``RowFault`` (unreadable_video, too_large_video) with what was found."""
    if not data:
        raise RowFault(Reason.UNREADABLE_VIDEO, "the video file has 0 bytes")
    if len(data) > max_bytes:
        raise RowFault(Reason.TOO_LARGE_VIDEO, f"{len(data):,} bytes, the limit is {max_bytes:,}")
    with _reasons(data):
        format, n_pixels = _header(data)
        if n_pixels > max_pixels:
            raise RowFault(Reason.TOO_LARGE_VIDEO, f"{n_pixels:,} pixels per frame, the limit is {max_pixels:,}")
        frames = FrameSource(io.BytesIO(data), max_pixels=max_pixels)
        n_frames = len(frames.index)
        if not n_frames:
            raise RowFault(Reason.UNREADABLE_VIDEO, f"{len(data)} bytes without a frame")
        if n_frames > max_frames:
            raise RowFault(Reason.TOO_LARGE_VIDEO, f"{n_frames:,} frames, the limit is {max_frames:,}")
        for number in range(n_frames):
            frames.frame(number)
        height, width = frames.rgb(n_frames - 1).shape[:2]
        fps = round(VideoReader(io.BytesIO(data)).get_avg_fps(), 3)
    return ProbedVideo(format, width, height, n_frames, fps)


def thumbnails(data: bytes, *, side: int) -> Thumbnails:
    """Every frame of a video that was probed before, in order, as (N, side, side, 3), RGB, 0..255."""
    frames = FrameSource(io.BytesIO(data), max_pixels=MAX_PIXELS)
    small = [thumbnail(frames.rgb(number), side=side) for number in range(len(frames.index))]
    return np.stack(small)


def thumbnail(pixels: NDArray[np.uint8], *, side: int) -> Thumbnails:
    """One picture (H, W, 3) as (side, side, 3)."""
    small = cv2.resize(pixels.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32)


def _header(data: bytes) -> tuple[str, int]:
    """How a file of its kind is called, and the pixels of one frame."""
    options = {"format_whitelist": ",".join(FORMATS), "protocol_whitelist": "file"}
    opened: Any = av.open(io.BytesIO(data), "r", container_options=options, metadata_errors="replace")
    with opened as container:
        stream = container.streams.best("video")
        if stream is None:
            raise RowFault(Reason.UNREADABLE_VIDEO, f"{len(data)} bytes of {container.format.name} without a picture")
        return FORMATS[container.format.name], stream.width * stream.height


@contextmanager
def _reasons(data: bytes) -> Iterator[None]:
    try:
        yield
    except RowFault:
        raise
    except Exception as fault:  # whatever a broken file makes a decoder raise
        raise RowFault(Reason.UNREADABLE_VIDEO, f"{len(data)} bytes: {type(fault).__name__}: {fault}") from fault
