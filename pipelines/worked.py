"""What a source knows of how a problem is solved: the oracle writes its trajectories from it.

``truth.details`` holds it as JSON under ``worked``: an idea, the steps of a solution in words, programs that compute
(the first) and verify (the second, if any), and what is seen then.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """How one problem is solved. ``drawn``: its first program draws a figure."""

    idea: str
    steps: tuple[str, ...]
    programs: tuple[str, ...]
    seen: str
    drawn: bool = False

    def as_json(self) -> dict[str, Any]:
        """For ``truth.details``."""
        return asdict(self)


def details_of(sample: Sample) -> dict[str, Any]:
    """``truth.details`` as an object; empty where there are none."""
    details = json.loads(sample.truth.details) if sample.truth.details else {}
    return details if isinstance(details, dict) else {}


def worked_of(sample: Sample) -> Worked:
    """How the sample is solved. Raises ``RowFault`` (unsuitable) where its source does not say: only a model can."""
    worked = details_of(sample).get("worked")
    if worked is None:
        raise RowFault(Reason.UNSUITABLE, "the source knows no program for this problem; only a model can write one")
    return Worked(**{**worked, "steps": tuple(worked["steps"]), "programs": tuple(worked["programs"])})
