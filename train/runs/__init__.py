"""A training run: its job directory, checkpoints, provenance, reports and pages; the errors of training for the user.

TrainError
├── JudgeDown       training ends with a checkpoint and resumes from it, evaluation from its rollouts
└── EngineDown      training ends with a checkpoint and resumes from it
"""


class TrainError(Exception):
    """Training cannot start or cannot go on: what was expected, what was found, what to do."""


class JudgeDown(TrainError):
    """A judge that rewards need is unavailable: its name, and why."""

    def __init__(self, judge: str, why: str) -> None:
        super().__init__(judge, why)  # both arguments: the error is sent between processes

    def __str__(self) -> str:
        judge, why = self.args
        return (
            f"the judge {judge} cannot be asked: {why}. See to the judge and run the same command again: "
            "it goes on where it stopped, and votes that were cast are not paid for a second time"
        )


class EngineDown(TrainError):
    """A server that generates rollouts gives none: its address, and why."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)  # both arguments: the error is sent between processes

    def __str__(self) -> str:
        address, why = self.args
        return (
            f"the vLLM server at {address} gives no rollouts: {why}. See to the server and run the same command again: "
            "training resumes from its last checkpoint"
        )
