"""Scripts of the oracle for the agentic families, with phrases and code in a TOML file of each family's name."""

from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside, some_form
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_turn,
    answering,
    before_look,
    by_scale,
    enlargement,
    family_script,
    label_of,
    silent,
    visibility,
)
from darkroom.pipelines.generation.recipes import as_looked_up, with_margin
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Sample, VideoRef
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.samples import FOUND, TemporalSegment, details_of, temporal_segments
from darkroom.pipelines.vision.visibility import candidates

_IMAGE = data_beside(__file__, "agentic_image")
_CODE = _IMAGE["code"]
MARGIN = 0.3
"""How far the zoom reaches beyond the target, as a share of the target's longer side."""
OVERVIEW_SIDE, READABLE_SIDE = 800, 600


def _look_or_answer(turn: CompletionRequest) -> str:
    sample, n = turn.task.sample, len(turn.rounds)
    is_search = details_of(sample).get(FOUND) == "searched"
    enhances = bool(sample.truth.boxes) and not is_search and Random(turn.task.seed).random() < 1 / 3
    if n == 2 + enhances:
        region, shows = _region(sample), _IMAGE["shows"]
        if is_search:
            shows = _IMAGE["found"]
        elif region is not None:
            shows = after_crop(sample, enlargement(region, readable_side=READABLE_SIDE), _IMAGE)
        return answer_turn(turn, PyVision(), shows)
    # seed_from gives every turn its own seed: its words don't depend on the other turns'
    rng = Random(turn.seed)
    if n == 0:
        thoughts, code = _IMAGE["first"], rng.choice(_CODE["overview"]).format(n=_index(sample), side=OVERVIEW_SIDE)
    elif n == 1 and is_search:
        image = sample.images[_index(sample)]
        boxes = [tuple(with_margin(box, image, margin=MARGIN)) for box in candidates(sample)]
        thoughts, code = _IMAGE["search"], _CODE["each"].format(n=_index(sample), boxes=boxes)
    elif n == 1:
        thoughts, code = _zoom(turn.task, rng)
    else:
        thoughts, code = _IMAGE["sure"], rng.choice(_CODE["sharper"])
    return PyVision().write_round(before_look(sample, rng, thoughts, label=label_of(sample)), code, first=not n)


def _zoom(task: Task, rng: Random) -> tuple[Sequence[str], str]:
    """Thoughts to choose from and code for the target; where none is known, for what was measured, or the halves."""
    region = _region(task.sample)
    if region is None:
        return _whole(task)
    scale, visible = enlargement(region, readable_side=READABLE_SIDE), visibility(task)
    code = silent(rng, _CODE["zoom" if scale > 1 else "cut"], task.sample)
    thoughts = [*by_scale("closer", scale, _IMAGE), *(_IMAGE["too_small"] if visible.size == "small" else ())]
    return thoughts, code.format(n=_index(task.sample), label=label_of(task.sample), box=tuple(region), scale=scale)


def _whole(task: Task) -> tuple[Sequence[str], str]:
    visible = visibility(task)
    kind = "turned" if visible.is_turned else "faint" if visible.is_faint else "halves"
    back = f"{-(visible.angle or 0) % 360:g}"
    return _IMAGE["whole"][kind], _CODE["whole"][kind].format(n=_index(task.sample), back=back)


def _index(sample: Sample) -> int:
    return sample.truth.boxes[0].image if sample.truth.boxes else 0


def _region(sample: Sample) -> Box | None:
    """The target with its surroundings, as the overview shows where it is; None where no target is known."""
    if not sample.truth.boxes:
        return None
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    exact = with_margin(target.box, image, margin=MARGIN, min_pixels=12)
    return as_looked_up(exact, image, Random(seed_from("agentic_image/region", sample.sample_id)))


agentic_image = family_script(_look_or_answer)
"""The whole, the part that matters, sometimes that part sharper, the answer."""


_VIDEO = data_beside(__file__, "agentic_video")
N_OVERVIEW = 8
MAX_CLOSE = 12
"""Frames spread evenly, and at most around the temporal segments."""


def _video_overview(turn: CompletionRequest) -> str:
    code = _VIDEO["code"]["overview"].format(video=_video(turn.task.sample), n=N_OVERVIEW, columns=N_OVERVIEW // 2)
    return PyVision().write_round(some_form(_VIDEO["first"], Random(turn.seed)), code, first=True)


def _closer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.seed)
    video = _video(sample)
    was_seen = _is_in_overview(sample)
    numbers = _with_others(_close_frames(sample), sample.videos[video], rng) if was_seen else _between(sample, rng)
    columns = min(3, len(numbers))
    rows = -(-len(numbers) // columns)
    code = _VIDEO["code"]["closer"].format(video=video, numbers=numbers, rows=rows, columns=columns)
    part = _part(numbers, sample.videos[video])
    thought = before_look(sample, rng, _VIDEO["next" if was_seen else "gaps"], part=part)
    return PyVision().write_round(thought, code, first=False)


def _is_in_overview(sample: Sample) -> bool:
    """True if the overview showed a frame of every segment: only then could one know where to look."""
    n_frames = sample.videos[_video(sample)].n_frames
    frames = [round(n * (n_frames - 1) / (N_OVERVIEW - 1)) for n in range(N_OVERVIEW)]
    return all(any(moment.first <= number < moment.end for number in frames) for moment in _moments(sample))


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


def _moments(sample: Sample) -> list[TemporalSegment]:
    return [moment for moment in temporal_segments(sample) if moment.video == _video(sample)]


def _close_frames(sample: Sample) -> list[int]:
    """Frames of every segment, two where there are few segments; every sixth part of a video without any."""
    video = sample.videos[_video(sample)]
    moments = _moments(sample)
    if not moments:
        return sorted({(2 * part + 1) * video.n_frames // 12 for part in range(6)})
    shares = ((1, 2),) if len(moments) > 3 else ((1, 3), (2, 3))
    numbers = {moment.first + part * (moment.end - moment.first) // of for moment in moments for part, of in shares}
    return sorted(numbers)[:MAX_CLOSE]


def _part(numbers: list[int], video: VideoRef) -> str:
    first, last = numbers[0] / video.n_frames, numbers[-1] / video.n_frames
    if last - first > 0.5:
        return "at several places of the video"
    middle = (first + last) / 2
    return "near the start" if middle < 1 / 3 else "towards the end" if middle > 2 / 3 else "around the middle"


agentic_video = family_script(_video_overview, _closer, answering(PyVision(), _VIDEO["shows"]))
"""Frames over the whole video, then those around the segments, then the answer."""
