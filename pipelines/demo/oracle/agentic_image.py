"""The oracle of ``agentic_image``: the whole, the part that matters, sometimes that part sharper, the answer."""

from collections.abc import Callable, Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    answer_turn,
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
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box

_SAYS = data_beside(__file__)
_CODE = _SAYS["code"]
MARGIN = 0.3
"""How far the zoom reaches beyond the target, as a share of the target's longer side."""
OVERVIEW_SIDE, READABLE_SIDE = 800, 600
Look = Callable[[Task, Random], tuple[Sequence[str], str]]
"""The thoughts to choose from, with the slot ``label``, and the code."""


def _look_or_answer(turn: CompletionRequest) -> str:
    looks: list[Look] = [_overview, _zoom]
    if turn.task.sample.truth.boxes and Random(turn.task.seed).random() < 1 / 3:
        looks.append(_enhance)
    sample = turn.task.sample
    if len(turn.rounds) == len(looks):
        return answer_turn(turn, PyVision(), _shows(sample))
    # seed_from gives every turn its own seed: its words don't depend on the other turns'
    rng = Random(turn.seed)
    thoughts, code = looks[len(turn.rounds)](turn.task, rng)
    thought = before_look(sample, rng, thoughts, label=label_of(sample))
    return PyVision().write_round(thought, code, first=not turn.rounds)


def _shows(sample: Sample) -> Sequence[str]:
    region = _region(sample)
    if region is None:
        return list(_SAYS["shows"])
    return after_crop(sample, enlargement(region, readable_side=READABLE_SIDE), _SAYS)


def _overview(task: Task, rng: Random) -> tuple[Sequence[str], str]:
    return _SAYS["first"], rng.choice(_CODE["overview"]).format(n=_index(task.sample), side=OVERVIEW_SIDE)


def _zoom(task: Task, rng: Random) -> tuple[Sequence[str], str]:
    """The target closer; where none is known, what the measurements ask for, or the halves one by one."""
    region = _region(task.sample)
    if region is None:
        return _whole(task)
    scale, visible = enlargement(region, readable_side=READABLE_SIDE), visibility(task)
    code = silent(rng, _CODE["zoom" if scale > 1 else "cut"], task.sample)
    thoughts = [*by_scale(_SAYS, "closer", scale), *(_SAYS["too_small"] if visible.size == "small" else ())]
    return thoughts, code.format(n=_index(task.sample), label=label_of(task.sample), box=tuple(region), scale=scale)


def _whole(task: Task) -> tuple[Sequence[str], str]:
    visible = visibility(task)
    kind = "turned" if visible.is_turned else "faint" if visible.is_faint else "halves"
    back = f"{-(visible.angle or 0) % 360:g}"
    return _SAYS["whole"][kind], _CODE["whole"][kind].format(n=_index(task.sample), back=back)


def _enhance(_: Task, rng: Random) -> tuple[Sequence[str], str]:
    return _SAYS["sure"], rng.choice(_CODE["sharper"])


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


script = family_script(_look_or_answer)
