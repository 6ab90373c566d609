"""TRL's GRPO trainer for batches in which some prompts have images and some have none.

TRL 1.16 marks a prompt without images by None, which the Qwen-VL processors refuse beside lists.
"""

from __future__ import annotations

from typing import Any

from trl.trainer.grpo_trainer import GRPOTrainer


class MixedGRPOTrainer(GRPOTrainer):
    """As TRL's own in everything else."""

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        ids, images, fields = super()._tokenize_prompts(prompts)
        return ids, None if images is None else [shown or [] for shown in images], fields
