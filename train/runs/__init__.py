"""A training run: its job directory, checkpoints, provenance, reports and pages; the errors of training for the user.

TrainError
├── JudgeDown       training ends with a checkpoint and resumes from it, evaluation from its rollouts
└── EngineDown      training ends with a checkpoint and resumes from it
"""

from typing import ClassVar

from darkroom.sandbox.errors import UserError


class TrainError(UserError):
    """Training cannot start or cannot go on: what was expected, what was found, what to do."""


class _Down(TrainError):
    """An outside service of a training is unavailable: its name, and why."""

    _message: ClassVar[str]

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)  # both arguments: the error is sent between processes

    def __str__(self) -> str:
        return self._message.format(*self.args)


class JudgeDown(_Down):
    """A judge that rewards need is unavailable."""

    _message = (
        "the judge {} cannot be asked: {}. See to the judge and run the same command again: "
        "it goes on where it stopped, and votes that were cast are not paid for a second time"
    )


class EngineDown(_Down):
    """A server that generates rollouts gives none: its address, and why."""

    _message = (
        "the vLLM server at {} gives no rollouts: {}. See to the server and run the same command again: "
        "training resumes from its last checkpoint"
    )
