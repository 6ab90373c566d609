"""The loss of every method: TRL's loss ``dapo`` over a mask that weighs each token as the method's ``loss_type`` does.

| ``loss_type`` | mean over | methods |
| --- | --- | --- |
| ``grpo`` | a rollout's tokens, then rollouts | adaptive, figr (eq. 9) |
| ``group`` | all tokens of a group, then groups | thyme (§4.2) |
| ``dapo`` | all tokens of the batch | codev (eq. 4), pyvision |

TRL's ``GRPOTrainer._compute_loss`` computes the clipped objective and the KL term from it; ``trainer.py`` calls
``weight_tokens``. Rewards: ``methods/``; advantages and the choice of groups: ``scoring.py``.
"""

from collections.abc import Sequence
from typing import Any

import torch
from trl.trainer.utils import split_pixel_values_by_grid, unsplit_pixel_values_by_grid

from darkroom.train.rl.settings import LossType

Batch = dict[str, Any]


def rows_of_groups(batch: Batch, groups: Sequence[int], *, size: int) -> Batch:
    """Select the rows of these groups of ``size``, in this order, with their images."""
    n_rows = batch["advantages"].shape[0]
    rows = [group * size + number for group in groups for number in range(size)]
    split = split_pixel_values_by_grid(batch)
    chosen = dict(unsplit_pixel_values_by_grid({name: _rows(value, rows, n_rows) for name, value in split.items()}))
    if "num_images" in chosen and not sum(chosen["num_images"]):
        for name in ("pixel_values", "image_grid_thw", "num_images"):  # a model does not take no pixels for pixels
            chosen.pop(name, None)
    return chosen


def weight_tokens(batch: Batch, dropped: Sequence[bool], *, size: int, longest: int, loss_type: LossType) -> Batch:
    """Weigh the tokens for TRL's loss ``dapo``, which divides a sum over the mask by ``num_items_in_batch``: of this
    process. In the clipped objective and in the KL each token weighs as ``loss_type`` says among the rollouts of its
    group of ``size`` and among the groups. Rollouts and groups without a token in the loss, those ``dropped``, count in
    no mean; of TRL's own losses, ``grpo`` counts them. No rollout has more than ``longest`` tokens, so the weights of
    each add up to 1 or more: TRL takes means over a rollout (GSPO's ratio, off-policy masks) by that sum, or by 1 where
    it is less."""
    mask: torch.Tensor = batch["completion_mask"] * batch.get("tool_mask", 1)
    mask = mask.masked_fill(torch.tensor(dropped, device=mask.device).unsqueeze(1), 0)
    if loss_type != "dapo":
        lengths = mask.sum(1).view(-1, size)
        if loss_type == "grpo":
            divisors = lengths * (lengths > 0).sum(1, keepdim=True)
        else:
            divisors = lengths.sum(1, keepdim=True).expand(-1, size)
        mask = mask * (size * longest / divisors.clamp(min=1).reshape(-1, 1))
    return {**batch, "tool_mask": mask, "num_items_in_batch": mask.sum()}


def _rows(value: Any, rows: Sequence[int], n_rows: int) -> Any:
    if isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == n_rows:
        return value[torch.tensor(rows, device=value.device)]
    if isinstance(value, list) and len(value) == n_rows:
        return [value[row] for row in rows]
    return value
