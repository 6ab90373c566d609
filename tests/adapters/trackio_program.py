"""`darkroom.train.grpo` as it is, but that the model writes a script: `trackio_program.py ARGUMENTS`."""

import sys

from darkroom.pipelines.command_line.errors import program_of
from darkroom.train.grpo import main
from darkroom.train.rl.rollouts import training
from tests.train.scripted import FIRST_TURNS, follow_script

build_trainer = training.build_trainer


def build_scripted(rows, model, processor, *arguments, **named):
    trainer = build_trainer(rows, model, processor, *arguments, **named)
    follow_script(trainer, processor, FIRST_TURNS)
    return trainer


if __name__ == "__main__":
    training.build_trainer = build_scripted
    sys.exit(program_of(main)())
