"""The oracle of ``real_world``: the plan, the operations that the truth asks for in one program, what it shows."""

from random import Random

from pipelines.demo import data_beside
from pipelines.demo.oracle.family_script import (
    closing_of,
    enlargement,
    family_script,
    label_of,
    obstacles,
    one_of_each,
    operation_plan,
    place_of,
)
from pipelines.generation.recipes import target_region
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme
from pipelines.models.tasks import spelled_answer
from pipelines.records import Sample
from pipelines.records.reject_reasons import Reason, RowError

_SAYS = data_beside(__file__)
_CODE = _SAYS["code"]


def _operate(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.task.seed)
    operations = _operations(sample)
    # a crop comes before a turn, so that its box is the original's
    slots: dict[str, object] = {"label": label_of(sample), "back": f"{-(sample.truth.angle or 0) % 360:g}"}
    if "region" in operations:
        region = target_region(sample)
        slots |= {"place": place_of(region, sample), "box": tuple(region), "scale": enlargement(region)}
    parts = [_SAYS[kind][operation] for kind in ("issues", "then") for operation in operations]
    thought = one_of_each(rng, *parts).format(**slots)
    steps = [rng.choice(_CODE["steps"][operation]).format(**slots) for operation in reversed(operations)]
    return Thyme().write_round(thought, "\n".join([_CODE["open"], *steps, rng.choice(_CODE["save"])]), first=True)


def _operations(sample: Sample) -> list[str]:
    """Raises ``RowError`` (wrong_plan) where another policy planned and the truth has no obstacle."""
    operations = [operation.name.lower() for operation in obstacles(sample)]
    if not operations:
        raise RowError(Reason.WRONG_PLAN, "the oracle knows of nothing that this image needs")
    return operations


def _answer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.seed)
    phrases = one_of_each(rng, _SAYS["worked"][_operations(sample)[0]], _SAYS["shows"])
    thought = phrases.format(label=label_of(sample), seen=spelled_answer(sample))
    return Thyme().write_answer(f"{thought}{closing_of(sample)}", sample.answer, first=False)


script = family_script(_operate, _answer, plan=operation_plan)
