"""Small videos, encoded for a test."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

N_FRAMES, FRAMES_PER_SECOND, STEP = 40, 25, 6
MILLISECONDS = Fraction(1, 1000)
X264 = {"preset": "ultrafast", "bf": "3", "b_strategy": "0", "sc_threshold": "0"}


def encode(
    path: Path,
    codec: str = "libx264",
    *,
    size: tuple[int, int] = (64, 48),
    pixels: str = "yuv420p",
    times: list[int] | None = None,
    n_frames: int = N_FRAMES,
    rotation: int = 0,
    with_audio: bool = False,
    **options: str,
) -> Path:
    """Frame i has brightness STEP * i on its left half; its right half moves."""
    with av.open(path, "w") as container:
        stream = container.add_stream(codec, rate=FRAMES_PER_SECOND)
        stream.width, stream.height, stream.pix_fmt = size[0], size[1], pixels
        stream.options, stream.thread_count = options, 1
        if times:
            stream.codec_context.time_base = MILLISECONDS
        if rotation:
            stream.set_display_rotation(rotation)
        audio = container.add_stream("aac", rate=16000) if with_audio else None
        for number in range(n_frames):
            frame = av.VideoFrame.from_ndarray(picture(number, size), "rgb24")
            frame.pts = times[number] if times else number
            frame.time_base = MILLISECONDS if times else Fraction(1, FRAMES_PER_SECOND)
            container.mux(stream.encode(frame))
            if audio:
                sound = av.AudioFrame.from_ndarray(np.zeros((1, 640), np.float32), "fltp", "mono")
                sound.sample_rate, sound.pts = 16000, 640 * number
                container.mux(audio.encode(sound))
        for last in (stream, audio):
            if last:
                container.mux(last.encode(None))
    return path


def picture(number: int, size: tuple[int, int]) -> np.ndarray:
    width, height = size
    pixels = np.full((height, width, 3), number * STEP % 256, np.uint8)
    pixels[:, width // 2 :] = np.arange(width - width // 2)[None, :, None] * 4 + number * 3
    return pixels
