"""The figures of an arm: greedy rollouts on held-out rows, and what the training logged of its own rollouts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from benchmarks.ablations.experiment import Arm
from benchmarks.ablations.models import MAX_PIXELS
from benchmarks.ablations.world import named_region, rows_below
from pipelines.records.digest import digest
from pipelines.records.geometry import Box
from train.evaluation.settings import COVER, WHOLE_SHARE

ASKED: Mapping[str, Any] = {
    "split": "all",
    "temperature": 0.0,
    "max_tokens": 64,
    "max_pixels": MAX_PIXELS,
    "max_rounds": 2,
    "batch_size": 64,
    "shown": 4,
}
"""How every arm is evaluated; its own ``asked`` stands over it."""
_COLUMNS = ["question", "rounds", "right", "fault", "seen"]
END = 4
"""The end of a training is its last quarter."""


def evaluation_settings(arm: Arm, root: Path, seed: int) -> Any:
    """As ``train.evaluate`` takes them. Raises pydantic's ``ValidationError`` for unknown ones."""
    from train.evaluation.settings import EvaluationSettings

    folder = root / f"seed-{seed}"
    name = f"{arm.model.name}-{digest(dict(arm.asked))[:8]}" if arm.asked else arm.model.name
    return EvaluationSettings(
        **{**ASKED, **(arm.asked or {})},
        output=folder / "evaluations" / name,
        model=str(folder / arm.model.name),
        datasets=(rows_below(root, "held_out"),),
        seed=seed,
        home=folder / "home",
    )


def measures(arm: Arm, root: Path, seed: int) -> dict[str, float]:
    """All figures of a trained arm, by the keys of ``experiment.MEASURES``."""
    found: dict[str, float] = {}
    if arm.model.program == "grpo":
        history = json.loads((root / f"seed-{seed}" / arm.model.name / "training.json").read_text())
        found |= of_training(history["steps"])
    if arm.asked is not None:
        from train.evaluate import evaluate

        report = evaluate(evaluation_settings(arm, root, seed))
        rollouts = pq.read_table(report.folder / "rollouts.parquet", columns=_COLUMNS).to_pylist()
        found |= of_rollouts(rollouts)
        if blank := report.made["results"]["all"]["controls"].get("blank"):
            found["blank_changes"] = blank["changed_right"]["mean"]
    return found


def of_rollouts(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of all rollouts, and code blocks per rollout. ``executed``: some code ran without an error; ``faithful``:
    an image that is a part of the question's shows half of the region or more (CodeV §3 on parts only, over all)."""

    def share(holds: Any) -> float:
        return fmean(bool(holds(rollout)) for rollout in rollouts)

    return {
        "right": share(lambda rollout: rollout["right"]),
        "executed": share(lambda one: any(turn["observation"]["status"] == "ok" for turn in one["rounds"])),
        "unanswered": share(lambda rollout: rollout["fault"] is not None),
        "tool_use": share(lambda rollout: rollout["rounds"]),
        "calls": fmean(len(rollout["rounds"]) for rollout in rollouts),
        "faithful": share(lambda rollout: any(_shows(image, rollout["question"]) for image in rollout["seen"])),
    }


def of_training(steps: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the log of GRPO says of the sampled rollouts: ``rolled_…`` over all steps, ``last_…`` over the last quarter.
    ``rolled_executable`` is over code blocks; steps without code have none."""
    last = steps[-max(1, len(steps) // END) :]
    with_code = [step for step in steps if step.get("tool_calls") and step.get("executable_rate") is not None]
    n_blocks = sum(step["tool_calls"] for step in with_code)
    ran = sum(step["tool_calls"] * step["executable_rate"] for step in with_code)
    return {
        "last_calls": fmean(step["tool_calls"] for step in last),
        "rolled_right": fmean(step["accuracy"] for step in steps),
        "rolled_executable": ran / n_blocks if n_blocks else 0.0,
        "rolled_positive_negative": fmean(step.get("positive_with_negative_advantage", 0.0) for step in steps),
    }


def _shows(image: Mapping[str, Any], question: str) -> bool:
    if image["box"] is None or image["share"] > WHOLE_SHARE:
        return False
    region = named_region(question)
    return Box(*image["box"]).intersection(region).area >= COVER * region.area
