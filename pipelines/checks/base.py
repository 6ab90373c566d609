"""What a check is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.images import ImageStore
from pipelines.records import Check, Sample, Trajectory


@dataclass(frozen=True, slots=True)
class Case:
    """A finished rollout with everything that is known about it."""

    sample: Sample
    trajectory: Trajectory
    hint: Mapping[str, Any]
    store: ImageStore


CheckFunction = Callable[[Case], Check]
"""Judges a case. An exception is the check's own fault: the row is quarantined, the run goes on."""
