"""Going on from a restart point with its weights, all of them.

transformers 5.23 saves a Qwen2.5-VL under the names that the hub has for its weights, and reads it back under those of
its modules without minding what is missing: no weight would be read, and training would go on from the base model with
a warning. LoRA's adapters, FSDP and DeepSpeed are read in other ways, which work.
"""

from __future__ import annotations

from typing import Any


class ReadsRestartPoints:
    """A trainer, mixed into one of TRL's before it, that reads the whole model or fails."""

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        trainer: Any = self
        target = trainer.model if model is None else model
        if trainer.is_fsdp_enabled or hasattr(target, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]
            return
        saved = type(target).from_pretrained(resume_from_checkpoint, dtype=target.dtype)
        target.load_state_dict(saved.state_dict(), strict=True)
