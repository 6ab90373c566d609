"""What runs on the event loop of a training's rollouts."""

import asyncio
from contextvars import ContextVar
from types import SimpleNamespace

from darkroom.train.rl.rollouts.generation import RolloutGenerator

tracker_run = ContextVar("tracker_run", default="none")


def test_a_run_that_a_tracker_began_after_the_loop_is_the_one_of_the_rollouts():
    """Trackers keep the run they log to in a context variable, and begin it in the trainer's callbacks."""

    async def read():
        return tracker_run.get()

    with asyncio.Runner() as runner:
        trainer = SimpleNamespace(_runner=runner)
        assert RolloutGenerator._run(trainer, read()) == "none"
        token = tracker_run.set("begun")
        assert RolloutGenerator._run(trainer, read()) == "begun"
        tracker_run.reset(token)
