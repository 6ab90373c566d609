"""A row that a stage took out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Disposition = Literal["rejected", "quarantined"]


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that a stage took out: the row itself (JSON), the stage, the typed reason and the evidence.

    ``rejected`` rows were judged and failed; ``quarantined`` rows could not be judged (a damaged image, an endpoint
    that gave up) and may pass once the cause is mended.
    """

    stage: str
    family: str
    reason: str
    check: str
    disposition: Disposition
    evidence: str
    source: str
    source_row: str
    sample_id: str
    trajectory_id: str
    row: str = field(repr=False)
