"""One JSON file per arm and seed, ``ROOT/results/EXPERIMENT/ARM/SEED.json``: written whole, and never made twice."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from darkroom.pipelines.storage.atomic_write import write_whole
from measurements.ablations.evaluations import ASKED
from measurements.ablations.experiment import HELD_OUT, Arm, Experiment
from measurements.ablations.world import ROWS

Figures = Mapping[str, Mapping[int, Mapping[str, float]]]
"""Measures by arm and seed."""


def settings_record(arm: Arm) -> dict[str, Any]:
    """Everything besides the seed that determines an arm's figures."""
    asked = None if arm.asked is None else {**ASKED, **arm.asked}
    record: dict[str, Any] = {"models": arm.model.record(), "asked": asked}
    if arm.asked is not None and arm.questions != (HELD_OUT,):
        record["questions"] = {name: list(ROWS[name]) for name in arm.questions}
    return json.loads(json.dumps(record))  # type: ignore[no-any-return]


def read(root: Path, experiment: Experiment, arm: Arm, seed: int) -> dict[str, float] | None:
    """The measures, or None where they are missing or of other settings."""
    path = _path(root, experiment, arm, seed)
    if not path.is_file():
        return None
    record = json.loads(path.read_text())
    measured: dict[str, float] = record["measures"]
    return measured if record["settings"] == settings_record(arm) else None


def write(root: Path, experiment: Experiment, arm: Arm, seed: int, measured: Mapping[str, float]) -> Path:
    path = _path(root, experiment, arm, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "experiment": experiment.name,
        "arm": arm.name,
        "seed": seed,
        "settings": settings_record(arm),
        "measures": dict(measured),
    }
    write_whole(path, json.dumps(record, indent=2) + "\n")
    return path


def figures(root: Path, experiment: Experiment) -> Figures:
    """All that is complete, of the seeds that every arm has."""
    found = {
        arm.name: {seed: measured for seed in experiment.seeds if (measured := read(root, experiment, arm, seed))}
        for arm in experiment.arms
    }
    whole = set(experiment.seeds).intersection(*found.values())
    return {name: {seed: by_seed[seed] for seed in sorted(whole)} for name, by_seed in found.items()}


def _path(root: Path, experiment: Experiment, arm: Arm, seed: int) -> Path:
    return root / "results" / experiment.name / arm.name / f"{seed}.json"
