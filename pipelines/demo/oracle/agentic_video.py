"""The oracle of ``agentic_video``: frames over the whole video, then those around the segments, then the answer."""

from collections.abc import Iterable
from functools import partial
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.grammar import some_form
from darkroom.pipelines.demo.oracle.family_script import answer_turn, before_look, family_script
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.records import Sample, VideoRef
from darkroom.pipelines.records.samples import TemporalSegment, temporal_segments

_SAYS = data_beside(__file__)
N_OVERVIEW = 8
MAX_CLOSE = 12
"""Frames spread evenly, and at most around the temporal segments."""


def _overview(turn: CompletionRequest) -> str:
    code = _SAYS["code"]["overview"].format(video=_video(turn.task.sample), n=N_OVERVIEW, columns=N_OVERVIEW // 2)
    return PyVision().write_round(some_form(_SAYS["first"], Random(turn.seed)), code, first=True)


def _closer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.seed)
    video = _video(sample)
    was_seen = _is_in_overview(sample)
    numbers = _with_others(_close_frames(sample), sample.videos[video], rng) if was_seen else _between(sample, rng)
    columns = min(3, len(numbers))
    rows = -(-len(numbers) // columns)
    code = _SAYS["code"]["closer"].format(video=video, numbers=numbers, rows=rows, columns=columns)
    thought = before_look(sample, rng, _SAYS["next" if was_seen else "gaps"], part=_part(numbers, sample.videos[video]))
    return PyVision().write_round(thought, code, first=False)


def _is_in_overview(sample: Sample) -> bool:
    """True if the overview showed a frame of every segment: only then could one know where to look."""
    n_frames = sample.videos[_video(sample)].n_frames
    frames = [round(n * (n_frames - 1) / (N_OVERVIEW - 1)) for n in range(N_OVERVIEW)]
    moments = [moment for moment in temporal_segments(sample) if moment.video == _video(sample)]
    return all(any(moment.first <= number < moment.end for number in frames) for moment in moments)


def _with_others(numbers: list[int], video: VideoRef, rng: Random) -> list[int]:
    """The frames and up to two more, beside them and elsewhere, as one asks for who is not sure yet."""
    beside = rng.choice(numbers) + rng.choice((-1, 1)) * max(2, video.n_frames // 12)
    others = [number for number in (beside, rng.randrange(video.n_frames)) if 0 <= number < video.n_frames]
    return sorted({*numbers, *others[: max(0, MAX_CLOSE - len(numbers))]})


def _between(sample: Sample, rng: Random) -> list[int]:
    """Frames of the segments, of which the overview missed some, among those in the middle of its gaps."""
    n_frames, frames = sample.videos[_video(sample)].n_frames, _close_frames(sample)
    gaps = [round((n + 0.5) * (n_frames - 1) / (N_OVERVIEW - 1)) for n in range(N_OVERVIEW - 1)]
    return sorted({*frames, *rng.sample(gaps, min(max(0, MAX_CLOSE - len(frames)), len(gaps)))})


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
    """Part of the video that holds the frames, in words."""
    first, last = numbers[0] / video.n_frames, numbers[-1] / video.n_frames
    if last - first > 0.5:
        return "at several places of the video"
    middle = (first + last) / 2
    return "near the start" if middle < 1 / 3 else "towards the end" if middle > 2 / 3 else "around the middle"


script = family_script(_overview, _closer, partial(answer_turn, protocol=PyVision(), phrases=_SAYS["shows"]))
