"""The errors of this package that a person is meant to read.

TrainFault
└── JudgeDown       training ends with a checkpoint and goes on from it; so does evaluation from its rollouts
"""

from __future__ import annotations


class TrainFault(Exception):
    """Training cannot start or cannot go on: what was expected, what was found, what to do."""


class JudgeDown(TrainFault):
    """A judge that rewards need cannot be asked, or no longer: which one, and why."""

    def __init__(self, judge: str, why: str) -> None:
        super().__init__(judge, why)  # both: processes tell one another of it

    def __str__(self) -> str:
        judge, why = self.args
        return (
            f"the judge {judge} cannot be asked: {why}. See to the judge and run the same command again: "
            "it goes on where it stopped, and votes that were cast are not paid for a second time"
        )
