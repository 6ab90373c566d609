"""The order of prompts in a GRPO training."""

from __future__ import annotations

from darkroom.train.rl.rollouts.trainer import EpochSampler


def test_an_epoch_has_the_order_that_it_has_in_an_uninterrupted_training():
    def sampler():
        return EpochSampler(range(9), mini_repeat_count=2, batch_size=3, seed=5)

    whole, resumed = sampler(), sampler()
    orders = [list(whole) for _ in range(3)]
    assert orders[0] != orders[2]
    resumed.set_epoch(2)
    assert list(resumed) == orders[2]
