"""The oracle of ``direct``: the plan that no operation is needed, then what the image shows and the answer."""

from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    closing_of,
    family_script,
    label_of,
    one_of_each,
    operation_plan,
    visibility,
)
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import spelled_answer

_SAYS = data_beside(__file__)


def _answer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.task.seed)
    usable = [*_SAYS["usable"], *(_SAYS["usable_plain"] if visibility(turn.task).is_plain else ())]
    thought = one_of_each(rng, usable, _SAYS["looked"], _SAYS["shows"])
    thought = thought.format(label=label_of(sample, unnamed="part in question"), seen=spelled_answer(sample))
    return Thyme().write_answer(f"{thought}{closing_of(sample)}", sample.answer, first=True)


script = family_script(_answer, plan=operation_plan)
