"""Agentic video: the video is in the runtime only, and the policy shows itself the frames that it needs.

PyVision-RL §3.1 (on-demand context), §3.4, figures 8, 19 and 20. The policy is told the question and what the videos
are (frames, seconds, size). Kept are rows with the right answer, at least two tool turns, none broken, few frames, and
among them the ones that answer the question, where the truth names them (``pipelines/moments.py``).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from pipelines.answers import split_choice
from pipelines.checks import (
    answer_matches,
    frames_within_budget,
    has_tool_turns,
    hint_stays_hidden,
    no_round_is_broken,
    relevant_frames_shown,
    visual_tokens_within_budget,
)
from pipelines.images import ImageStore
from pipelines.moments import Moment, moments_of
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import PyVision
from pipelines.recipes.base import Recipe
from pipelines.records import Sample, VideoRef
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared

N_OVERVIEW = 8
MAX_CLOSE = 12
"""Frames that the oracle shows evenly, and at most around the moments."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The images, if there are any, and no hint."""
    if not sample.videos:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no video")
    try:
        moments_of(sample)
    except ValueError as fault:
        raise RowFault(Reason.MALFORMED_ROW, str(fault)) from fault
    return Prepared(sample.images)


def script(turn: Turn) -> str:
    """The oracle: frames over the whole video, then those around the moments, then the answer."""
    draw = random.Random(turn.seed)
    if not turn.rounds:
        return _overview(turn.task.sample, draw)
    if len(turn.rounds) == 1:
        return _closer(turn.task.sample, draw)
    return _answer(turn.task.sample, draw)


def _overview(sample: Sample, draw: random.Random) -> str:
    code = _OVERVIEW.format(video=_video(sample), n=N_OVERVIEW, columns=N_OVERVIEW // 2)
    return PyVision().write_round(draw.choice(_FIRST), code, first=True)


def _closer(sample: Sample, draw: random.Random) -> str:
    numbers = _close_frames(sample)
    columns = min(3, len(numbers))
    rows = -(-len(numbers) // columns)
    code = _CLOSER.format(video=_video(sample), numbers=numbers, rows=rows, columns=columns)
    part = _part(numbers, sample.videos[_video(sample)])
    return PyVision().write_round(draw.choice(_NEXT).format(part=part), code, first=False)


def _answer(sample: Sample, draw: random.Random) -> str:
    seen = dict(map(split_choice, sample.choices))[sample.answer] if sample.choices else sample.answer
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    return PyVision().write_answer(f"{draw.choice(_SHOWS).format(seen=seen)}{closing}", sample.answer, first=False)


def _video(sample: Sample) -> int:
    moments = moments_of(sample)
    return moments[0].video if moments else 0


def _close_frames(sample: Sample) -> list[int]:
    """Frames of every moment, two where there are few moments; every sixth part of a video without any."""
    video = sample.videos[_video(sample)]
    moments = [moment for moment in moments_of(sample) if moment.video == _video(sample)]
    if not moments:
        return sorted({(2 * part + 1) * video.n_frames // 12 for part in range(6)})
    return sorted({number for moment in moments for number in _frames_of(moment, few=len(moments) > 3)})[:MAX_CLOSE]


def _frames_of(moment: Moment, *, few: bool) -> Iterable[int]:
    length = moment.end - moment.first
    return [moment.first + length // 2] if few else [moment.first + length // 3, moment.first + 2 * length // 3]


def _part(numbers: list[int], video: VideoRef) -> str:
    """Which part of the video the frames are in, in words."""
    first, last = numbers[0] / video.n_frames, numbers[-1] / video.n_frames
    if last - first > 0.5:
        return "at several places of the video"
    middle = (first + last) / 2
    return "near the start" if middle < 1 / 3 else "towards the end" if middle > 2 / 3 else "around the middle"


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

recipe = Recipe(
    family="agentic_video",
    description="Agentic video: the policy shows itself the frames that it needs, on demand (PyVision-RL §3.1).",
    file=Path(__file__),
    prompt=bundled_prompt("agentic_video"),
    protocol=PyVision(),
    prepare=prepare,
    script=script,
    checks=(
        answer_matches,
        has_tool_turns,
        no_round_is_broken,
        frames_within_budget,
        visual_tokens_within_budget,
        relevant_frames_shown,
        hint_stays_hidden,
    ),
    loss_policy="all_rounds",
)
