"""The figures of an arm: greedy rollouts on held-out rows, and what the training logged of its own rollouts."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.geometry import Box
from darkroom.train.evaluation.settings import COVER, WHOLE_SHARE
from measurements.ablations.experiment import HELD_OUT, Arm
from measurements.ablations.models import MAX_PIXELS
from measurements.ablations.world import named_regions, rows_below

ASKED: Mapping[str, Any] = {
    "split": "all",
    "temperature": 0.0,
    "max_tokens": 64,
    "max_pixels": MAX_PIXELS,
    "max_rounds": 2,
    "batch_size": 64,
    "shown": 4,
}
"""Settings of every arm's evaluation; its own ``asked`` stands over them."""
_COLUMNS = ["question", "category", "images", "rounds", "right", "fault", "seen"]
_COUNTED: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "right": lambda rollout: float(rollout["right"]),
    "tool_use": lambda rollout: float(bool(rollout["rounds"])),
    "calls": lambda rollout: float(len(rollout["rounds"])),
}
CATEGORIES = frozenset({"far", "near", "one_look", "two_looks"})
"""Categories of questions that are counted apart: where a sign is seen from, and how many looks are needed."""
END = 4
"""The start and the end of a training are a quarter each."""
FAITHFUL = "parts/faithful"
"""The name under which ``methods/codev_by_boxes.py`` logs."""


def evaluation_settings(arm: Arm, root: Path, seed: int, questions: str | None = None) -> Any:
    """Settings for ``darkroom.train.evaluate``; ``questions`` is one of the arm's datasets, the first without it.

    Raises pydantic's ``ValidationError`` for unknown ones.
    """
    from darkroom.train.evaluation.settings import EvaluationSettings

    folder, questions = root / f"seed-{seed}", questions or arm.questions[0]
    name = f"{arm.model.name}-{digest(dict(arm.asked))[:8]}" if arm.asked else arm.model.name
    return EvaluationSettings(
        **{**ASKED, **(arm.asked or {})},
        output=folder / "evaluations" / (name if questions == HELD_OUT else f"{name}-{questions}"),
        model=str(folder / arm.model.name),
        datasets=(rows_below(root, questions),),
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
        first, *others = arm.questions
        found |= _evaluated(arm, root, seed, first)
        for questions in others:
            prefix = questions.removeprefix(f"{HELD_OUT}_")
            found |= {f"{prefix}_{key}": value for key, value in _evaluated(arm, root, seed, questions).items()}
    return found


def _evaluated(arm: Arm, root: Path, seed: int, questions: str) -> dict[str, float]:
    from darkroom.train.evaluate import evaluate

    report = evaluate(evaluation_settings(arm, root, seed, questions))
    found = of_rollouts(pq.read_table(report.folder / "rollouts.parquet", columns=_COLUMNS).to_pylist())
    results = report.made["results"]["all"]
    if blank := results["controls"].get("blank"):
        found["blank_changes"] = blank["changed_right"]["mean"]
    return found | {"visual_tokens": results["visual_tokens"]["all"]["mean"]}


def of_rollouts(rollouts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of all rollouts, and code blocks per rollout. ``executed``: some code ran without an error; ``faithful``:
    an image that is a part of the question's shows half of the region or more (CodeV §3 on parts only, over all).
    ``…_far`` and the like: of questions of that category."""

    def share(holds: Any) -> float:
        return fmean(bool(holds(rollout)) for rollout in rollouts)

    by_category = {
        f"{key}_{category}": fmean(counted(rollout) for rollout in rollouts if rollout["category"] == category)
        for category in sorted(CATEGORIES & {rollout["category"] for rollout in rollouts})
        for key, counted in _COUNTED.items()
    }
    return {
        "right": share(lambda rollout: rollout["right"]),
        "executed": share(lambda one: any(turn["observation"]["status"] == "ok" for turn in one["rounds"])),
        "unanswered": share(lambda rollout: rollout["fault"] is not None),
        "tool_use": share(lambda rollout: rollout["rounds"]),
        "calls": fmean(len(rollout["rounds"]) for rollout in rollouts),
        "faithful": share(lambda rollout: any(_shows(image, rollout) for image in rollout["seen"])),
        **by_category,
    }


def of_training(steps: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Figures of the sampled rollouts in GRPO's log: ``rolled_…`` over all steps, ``first_…`` and ``last_…`` over
    the first and the last quarter. ``rolled_executable`` is over code blocks; steps without code have none."""
    n_ends = max(1, len(steps) // END)
    first, last = steps[:n_ends], steps[-n_ends:]
    with_code = [step for step in steps if step.get("tool_calls") and step.get("executable_rate") is not None]
    n_blocks = sum(step["tool_calls"] for step in with_code)
    ran = sum(step["tool_calls"] * step["executable_rate"] for step in with_code)
    return {
        "last_calls": fmean(step["tool_calls"] for step in last),
        "last_tool_use": fmean(step.get("tool_use", 0.0) for step in last),
        "first_faithful": fmean(step.get(FAITHFUL, 0.0) for step in first),
        "last_faithful": fmean(step.get(FAITHFUL, 0.0) for step in last),
        "rolled_right": fmean(step["accuracy"] for step in steps),
        "rolled_executable": ran / n_blocks if n_blocks else 0.0,
        "rolled_positive_negative": fmean(step.get("positive_with_negative_advantage", 0.0) for step in steps),
    }


def _shows(image: Mapping[str, Any], rollout: Mapping[str, Any]) -> bool:
    if image["box"] is None or image["share"] > WHOLE_SHARE:
        return False
    whole = rollout["images"][0]
    try:
        regions = named_regions(rollout["question"], (whole["width"], whole["height"]))
    except ValueError:
        return False  # of a film a frame is named
    return any(Box(*image["box"]).intersection(region).area >= COVER * region.area for region in regions)
