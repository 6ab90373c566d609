"""Which rollouts of a generated batch move the model: broken ones do not, and of too many groups the best are kept.

A batch is the dict of tensors that TRL's ``_generate_and_score_completions`` returns, rows in groups. Its size is the
same in every process and step, so a group that is left out keeps its place, with nothing of it in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from trl.trainer.utils import split_pixel_values_by_grid, unsplit_pixel_values_by_grid

Batch = dict[str, Any]


def with_advantages(batch: Batch, advantages: Sequence[float]) -> Batch:
    """``batch`` with these advantages, one per row."""
    given = batch["advantages"]
    return {**batch, "advantages": torch.tensor(advantages, dtype=given.dtype, device=given.device)}


def without_rows(batch: Batch, out: Sequence[bool]) -> Batch:
    """``batch`` with the rows that are ``out`` masked: they are in no loss, no KL and no mean length."""
    if not any(out):
        return batch
    loss_mask = batch["tool_mask"] if "tool_mask" in batch else torch.ones_like(batch["completion_mask"])
    kept = torch.tensor([not one for one in out], dtype=loss_mask.dtype, device=loss_mask.device)
    advantages = batch["advantages"] * kept.to(batch["advantages"].dtype)
    return {**batch, "tool_mask": loss_mask * kept.unsqueeze(1), "advantages": advantages}


def chosen_groups(batch: Batch, groups: Sequence[int], *, size: int) -> Batch:
    """The rows of these groups of ``size``, in this order, with their images."""
    n_rows = batch["advantages"].shape[0]
    rows = [group * size + place for group in groups for place in range(size)]
    split = split_pixel_values_by_grid(batch)
    chosen = dict(unsplit_pixel_values_by_grid({name: _rows(value, rows, n_rows) for name, value in split.items()}))
    if "num_images" in chosen and not sum(chosen["num_images"]):
        for name in ("pixel_values", "image_grid_thw", "num_images"):  # a model does not take no pixels for pixels
            chosen.pop(name, None)
    return chosen


def n_trained(batch: Batch) -> torch.Tensor:
    """How many tokens of a batch are in the loss."""
    mask: torch.Tensor = batch["completion_mask"]
    return (mask * batch["tool_mask"] if "tool_mask" in batch else mask).sum()


def _rows(value: Any, rows: Sequence[int], n_rows: int) -> Any:
    if isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == n_rows:
        return value[torch.tensor(rows, device=value.device)]
    if isinstance(value, list) and len(value) == n_rows:
        return [value[row] for row in rows]
    return value
