"""The oracle of ``real_world``: the plan, the operations that the truth asks for in one program, what it shows."""

from collections.abc import Sequence
from random import Random

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.oracle.family_script import (
    after_crop,
    before_look,
    by_scale,
    closing_of,
    enlargement,
    family_script,
    label_of,
    looked_up,
    obstacles,
    one_of_each,
    operation_plan,
    place_of,
    silent,
    visibility,
    why_closer,
)
from darkroom.pipelines.generation.recipes import target_region
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import Task, spelled_answer
from darkroom.pipelines.records.reject_reasons import Reason, RowError

_SAYS = data_beside(__file__)
_CODE = _SAYS["code"]


def _operate(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.task.seed)
    operations = _operations(turn.task)
    # a crop comes before a turn, so that its box is the original's
    slots: dict[str, object] = {"label": label_of(sample), "back": f"{-(sample.truth.angle or 0) % 360:g}"}
    says = {kind: dict(_SAYS[kind]) for kind in ("issues", "then")}
    steps = dict(_CODE["steps"])
    if "region" in operations:
        region = looked_up(turn, target_region(sample))
        scale = enlargement(region)
        slots |= {"place": place_of(region, sample), "box": tuple(region), "scale": scale}
        says["issues"]["region"] = why_closer(visibility(turn.task), _SAYS["closer"])
        says["then"]["region"] = by_scale(_SAYS["then"], "region", scale)
        steps["region"] = _CODE["steps"]["region" if scale > 1 else "region_plain"]
    parts = [says[kind][operation] for kind in ("issues", "then") for operation in operations]
    thought = before_look(sample, rng, *parts, **slots)
    code = [silent(rng, steps[operation], sample).format(**slots) for operation in reversed(operations)]
    return Thyme().write_round(thought, "\n".join([_CODE["open"], *code, rng.choice(_CODE["save"])]), first=True)


def _operations(task: Task) -> list[str]:
    """Raises ``RowError`` (wrong_plan) where another policy planned and no obstacle was measured."""
    operations = [operation.name.lower() for operation in obstacles(task)]
    if not operations:
        raise RowError(Reason.WRONG_PLAN, "the oracle knows of nothing that this image needs")
    return operations


def _answer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, Random(turn.seed)
    reference = _worked(turn, _operations(turn.task)[0])
    thought = one_of_each(rng, reference, _SAYS["shows"]).format(label=label_of(sample), seen=spelled_answer(sample))
    return Thyme().write_answer(f"{thought}{closing_of(sample)}", sample.answer, first=False)


def _worked(turn: CompletionRequest, operation: str) -> Sequence[str]:
    if operation != "region":
        return list(_SAYS["worked"][operation])
    sample = turn.task.sample
    return after_crop(sample, enlargement(looked_up(turn, target_region(sample))), _SAYS["worked"]["region"])


script = family_script(_operate, _answer, plan=operation_plan)
