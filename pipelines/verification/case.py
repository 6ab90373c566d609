"""A case: what checks and judges are given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.storage.images import ImageStore


@dataclass(frozen=True, slots=True)
class Case:
    """A finished rollout with everything that is known about it."""

    sample: Sample
    trajectory: Trajectory
    hint: Mapping[str, Any]
    store: ImageStore
