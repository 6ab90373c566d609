"""The accuracy on held-out questions: one greedy rollout each, graded by the row's grader, as in training."""

from collections.abc import Sequence
from typing import Any

import torch

from darkroom.train.runs import TrainError
from darkroom.train.runs.held_out import shares


def held_out_accuracy(trainer: Any, rows: Sequence[Any], *, size: int) -> dict[str, float]:
    """``eval_accuracy``, ``eval_answered``, ``eval_tool_use`` (proportions of the rollouts that are not broken) and
    ``eval_broken_rate``, of the ``SandboxGRPOTrainer``'s model.

    A rollout is broken where the sandbox failed; code that exceeds its time is not. Each process plays its share of the
    rows, ``size`` at a time. Raises ``JudgeDown``, and ``TrainError`` where every rollout is broken.
    """
    accelerator = trainer.accelerator
    counts = torch.zeros(5, dtype=torch.float64, device=accelerator.device)
    place = {"process": accelerator.process_index, "n_processes": accelerator.num_processes}
    for share in shares(len(rows), size, **place):
        graded = trainer.grade([rows[row] for row in share.rows])
        for outcome, right in graded if share.counts else ():
            broken = outcome.sandbox_error is not None
            whole = (right, outcome.answer is not None, outcome.used_tool, True)
            counts += torch.tensor([*(float(value and not broken) for value in whole), float(broken)]).to(counts)
    right, answered, used_tool, n_whole, n_broken = accelerator.reduce(counts, reduction="sum").tolist()
    if not n_whole:
        raise TrainError(f"all {n_broken:.0f} held-out rollouts are broken: the sandbox failed in each")
    return {
        "eval_accuracy": right / n_whole,
        "eval_answered": answered / n_whole,
        "eval_tool_use": used_tool / n_whole,
        "eval_broken_rate": n_broken / (n_whole + n_broken),
    }
