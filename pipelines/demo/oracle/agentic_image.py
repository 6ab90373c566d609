"""The oracle of ``agentic_image``: the whole, the part that matters, sometimes that part made clearer, the answer."""

from collections.abc import Callable
from random import Random

from pipelines.demo import data_beside
from pipelines.demo.oracle.family_script import answer_turn, enlargement, family_script, label_of
from pipelines.generation.recipes import with_margin
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import PyVision
from pipelines.records import Sample
from pipelines.records.geometry import Box

_SAYS = data_beside(__file__)
_CODE = _SAYS["code"]
MARGIN = 0.3
"""How far the zoom reaches beyond the target, as a share of the target's longer side."""
OVERVIEW_SIDE, READABLE_SIDE = 800, 600
Look = Callable[[Sample, Random], tuple[str, str]]
"""The thought, with the slot ``label``, and the code."""


def _look_or_answer(turn: CompletionRequest) -> str:
    looks: list[Look] = [_overview, _zoom]
    if turn.task.sample.truth.boxes and Random(turn.task.seed).random() < 1 / 3:
        looks.append(_enhance)
    if len(turn.rounds) == len(looks):
        return answer_turn(turn, PyVision(), _SAYS["shows"])
    # seed_from gives every turn its own seed: its words don't depend on the other turns'
    thought, code = looks[len(turn.rounds)](turn.task.sample, Random(turn.seed))
    return PyVision().write_round(thought.format(label=label_of(turn.task.sample)), code, first=not turn.rounds)


def _overview(sample: Sample, rng: Random) -> tuple[str, str]:
    return rng.choice(_SAYS["first"]), _CODE["overview"].format(n=_index(sample), side=OVERVIEW_SIDE)


def _zoom(sample: Sample, rng: Random) -> tuple[str, str]:
    region = _region(sample)
    if region is None:
        return rng.choice(_SAYS["whole"]), _CODE["whole"].format(n=_index(sample))
    scale = enlargement(region, readable_side=READABLE_SIDE)
    code = _CODE["zoom"].format(n=_index(sample), label=label_of(sample), box=tuple(region), scale=scale)
    return rng.choice(_SAYS["closer"]), code


def _enhance(_: Sample, rng: Random) -> tuple[str, str]:
    return rng.choice(_SAYS["sure"]), rng.choice(_CODE["clearer"])


def _index(sample: Sample) -> int:
    return sample.truth.boxes[0].image if sample.truth.boxes else 0


def _region(sample: Sample) -> Box | None:
    """The target with its surroundings; None where no target is known."""
    if not sample.truth.boxes:
        return None
    target = sample.truth.boxes[0]
    return with_margin(target.box, sample.images[target.image], margin=MARGIN, min_pixels=12)


script = family_script(_look_or_answer)
