"""Frames of a video, uniformly sampled, for a context that shows a video: the baseline of PyVision-RL's figure 4."""

import io

from PIL import Image

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.samples import FRAME
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import MAX_PIXELS

MAX_FRAMES = 1024
"""Of one video."""


def frame_numbers(video: VideoRef, *, n_frames: int | None = None, per_second: float | None = None) -> tuple[int, ...]:
    """The middle frames of ``n_frames`` equal parts, or one frame every ``1 / per_second`` from the first on.

    No frame twice, at most ``MAX_FRAMES``. Raises ``ValueError`` unless exactly one of both is given, and for a rate of
    a video that states none.
    """
    if (n_frames is None) == (per_second is None):
        raise ValueError("frames are sampled by number or by rate: give one of both")
    if per_second is not None:
        if video.fps <= 0:
            raise ValueError("the video does not say how many frames a second has; sample a number of frames")
        n_frames = max(1, int((video.n_frames - 1) * per_second / video.fps) + 1)
        numbers = [round(place * video.fps / per_second) for place in range(min(n_frames, MAX_FRAMES))]
    else:
        n_parts = min(n_frames or 1, video.n_frames, MAX_FRAMES)
        numbers = [(2 * part + 1) * video.n_frames // (2 * n_parts) for part in range(n_parts)]
    return tuple(dict.fromkeys(min(number, video.n_frames - 1) for number in numbers))


def sampled_frames(
    video: VideoRef, store: ImageStore, *, n_frames: int | None = None, per_second: float | None = None
) -> tuple[ImageRef, ...]:
    """The frames of a stored video as images of the store. Raises as ``frame_numbers``."""
    from darkroom.sandbox._guest.video_frames import FrameSource  # needs the extra `video`

    numbers = frame_numbers(video, n_frames=n_frames, per_second=per_second)
    frames = FrameSource(io.BytesIO(store.read(video)), max_pixels=MAX_PIXELS)
    return tuple(
        store.add_pixels(Image.fromarray(frames.rgb(number)), parent=video.sha256, made_by=f"{FRAME}{number}")
        for number in numbers
    )
