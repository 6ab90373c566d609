"""`train.grpo` as it is, but that the model writes a script: `trackio_program.py ARGUMENTS`."""

import sys

from pipelines.storage.command_errors import program_of
from tests.train.scripted import FIRST_TURNS, follow_script
from train.grpo import main
from train.rl.rollouts import training

build_trainer = training.build_trainer


def build_scripted(rows, model, processor, *arguments, **named):
    trainer = build_trainer(rows, model, processor, *arguments, **named)
    follow_script(trainer, processor, FIRST_TURNS)
    return trainer


if __name__ == "__main__":
    training.build_trainer = build_scripted
    sys.exit(program_of(main)())
