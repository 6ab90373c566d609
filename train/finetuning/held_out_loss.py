"""The loss on held-out rows: the mean over all their trained tokens, whatever their division into forward passes."""

from collections.abc import Sequence
from typing import Any

import torch

from darkroom.train.examples.encoding import RowReader
from darkroom.train.runs.held_out import shares


def held_out_loss(trainer: Any, rows: Sequence[Any], reader: RowReader, *, size: int) -> dict[str, float]:
    """``eval_loss`` (negative log-likelihood per token) and ``eval_mean_token_accuracy`` of a trainer's model.

    ``rows`` are those of the dataset; each process reads its share of them, ``size`` at a time.
    """
    accelerator = trainer.accelerator
    sums = torch.zeros(3, dtype=torch.float64, device=accelerator.device)
    place = {"process": accelerator.process_index, "n_processes": accelerator.num_processes}
    for share in shares(len(rows), size, **place):
        batch = reader.read([rows[row] for row in share.rows])
        inputs = {name: value.to(accelerator.device) for name, value in batch.items()}
        with trainer.compute_loss_context_manager():
            output = trainer.model_wrapped(**inputs, use_cache=False, fused_lm_head=True)
        if share.counts:
            columns = (-output.log_probs, output.label_mask, output.is_top1)
            sums += torch.stack([column.sum().double() for column in columns])
    loss, n_tokens, n_right = accelerator.reduce(sums, reduction="sum").tolist()
    return {"eval_loss": loss / n_tokens, "eval_mean_token_accuracy": n_right / n_tokens}
