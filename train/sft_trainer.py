"""TRL's SFT trainer, with what a long run in steps of many rows needs over it."""

from __future__ import annotations

from typing import Any

from trl.trainer.sft_trainer import SFTTrainer

from train.resuming import ReadsRestartPoints


class StepwiseSFTTrainer(ReadsRestartPoints, SFTTrainer):
    """The loss of a step is the mean over all tokens that it trains, however many rows go through the model at a time.

    TRL 1.16 computes it so when it is told how many tokens there are in a step. It is not told for the Qwen-VL models,
    which declare that they take no such number themselves: then a row of five trained tokens that goes through alone
    weighs as much as one of five hundred, and the result depends on how a batch is cut up.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = True
