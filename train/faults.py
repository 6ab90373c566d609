"""The one error of this package that a person is meant to read."""

from __future__ import annotations


class TrainFault(Exception):
    """Training cannot start or cannot go on: what was expected, what was found, what to do."""
