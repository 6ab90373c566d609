"""The oracle of ``agentic_video``: frames over the whole video, then those around the segments, then the answer."""

from __future__ import annotations

import random
from collections.abc import Iterable

from pipelines.demo.oracle.family_script import answer_turn, family_script
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import PyVision
from pipelines.records import Sample, VideoRef
from pipelines.records.samples import TemporalSegment, temporal_segments

N_OVERVIEW = 8
MAX_CLOSE = 12
"""Frames spread evenly, and at most around the temporal segments."""


def _overview(turn: CompletionRequest) -> str:
    code = _OVERVIEW.format(video=_video(turn.task.sample), n=N_OVERVIEW, columns=N_OVERVIEW // 2)
    return PyVision().write_round(random.Random(turn.seed).choice(_FIRST), code, first=True)


def _closer(turn: CompletionRequest) -> str:
    sample = turn.task.sample
    numbers = _close_frames(sample)
    columns = min(3, len(numbers))
    rows = -(-len(numbers) // columns)
    code = _CLOSER.format(video=_video(sample), numbers=numbers, rows=rows, columns=columns)
    part = _part(numbers, sample.videos[_video(sample)])
    return PyVision().write_round(random.Random(turn.seed).choice(_NEXT).format(part=part), code, first=False)


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, PyVision(), _SHOWS)


def _video(sample: Sample) -> int:
    moments = temporal_segments(sample)
    return moments[0].video if moments else 0


def _close_frames(sample: Sample) -> list[int]:
    """Frames of every segment, two where there are few segments; every sixth part of a video without any."""
    video = sample.videos[_video(sample)]
    moments = [moment for moment in temporal_segments(sample) if moment.video == _video(sample)]
    if not moments:
        return sorted({(2 * part + 1) * video.n_frames // 12 for part in range(6)})
    return sorted({number for moment in moments for number in _frames_of(moment, few=len(moments) > 3)})[:MAX_CLOSE]


def _frames_of(moment: TemporalSegment, *, few: bool) -> Iterable[int]:
    length = moment.end - moment.first
    return [moment.first + length // 2] if few else [moment.first + length // 3, moment.first + 2 * length // 3]


def _part(numbers: list[int], video: VideoRef) -> str:
    """Which part of the video the frames are in, in words."""
    first, last = numbers[0] / video.n_frames, numbers[-1] / video.n_frames
    if last - first > 0.5:
        return "at several places of the video"
    middle = (first + last) / 2
    return "near the start" if middle < 1 / 3 else "towards the end" if middle > 2 / 3 else "around the middle"


script = family_script(_overview, _closer, _answer)


_FIRST = (
    "I cannot see the video yet, so I sample frames evenly over its whole length to learn what happens in it.",
    "First an overview: how long the video is, and a few frames spread over all of it.",
    "Let me start with evenly spaced frames, to find the part that the question is about.",
)
_NEXT = (
    "The overview tells me where to look, but it is too coarse to be sure. I show more frames {part}, larger.",
    "What the question asks about must be {part}. I look at frames from there at a size at which details can be read.",
    "These frames are too far apart to decide. I sample again {part} and draw the frames larger.",
)
_SHOWS = (
    "Now the frames show it clearly: {seen}.",
    "Together with the overview these frames settle the question: {seen}.",
    "With these frames there is no doubt left. It is {seen}.",
)
_OVERVIEW = """\
import matplotlib.pyplot as plt
import numpy as np

n_frames = len(video_clue_{video})
print(n_frames, "frames,", video_clue_{video}.get_avg_fps(), "per second")
numbers = np.linspace(0, n_frames - 1, {n}).astype(int)
frames = video_clue_{video}.get_batch(numbers).asnumpy()
figure, axes = plt.subplots(2, {columns}, figsize=(12, 5))
for axis, number, frame in zip(axes.flat, numbers, frames):
    axis.imshow(frame)
    axis.set_title(f"frame {{number}}")
    axis.axis("off")
plt.tight_layout()
plt.show()"""
_CLOSER = """\
import matplotlib.pyplot as plt

numbers = {numbers}
frames = video_clue_{video}.get_batch(numbers).asnumpy()
height, width = frames.shape[1:3]
size = (4 * {columns}, (4 * height / width + 0.3) * {rows})
figure, axes = plt.subplots({rows}, {columns}, figsize=size, squeeze=False)
for axis in axes.flat:
    axis.axis("off")
for axis, number, frame in zip(axes.flat, numbers, frames):
    axis.imshow(frame)
    axis.set_title(f"frame {{number}}")
plt.tight_layout()
plt.show()"""
