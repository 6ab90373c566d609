"""The errors of this package that a person is meant to read."""

from __future__ import annotations


class TrainFault(Exception):
    """Training cannot start or cannot go on: what was expected, what was found, what to do."""


class JudgeDown(TrainFault):
    """A judge that rewards need cannot be asked; the training keeps what it has learnt and ends."""
