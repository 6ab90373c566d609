"""Suitability labels by people: whether a drawing would help with a maths problem, without the models' votes.

Only for problems in words: where there is an image, there is nothing to draw. The labels go to the table
``suitability_reviews``, one partition per source, and to ``suitability.jsonl``, for calibrating the models' vote: yes
is an ``accept``, no a ``reject``; "cannot tell" is skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from darkroom.annotation.queues.base import QueueVerdict, SourceQueue, item_page, read_verdicts, shards_of, write_labels
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import Sample, SuitabilityReview
from darkroom.pipelines.rl.suitability import VOTES, agreement, reviews_key
from darkroom.pipelines.storage.stage import StageReport
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.verification.judges.calibration import Calibration

ROUND = "suitability"
CHECK = "suitability"
"""The check that the labels are for."""
LABELS = {"yes": "accept", "no": "reject"}


@dataclass(frozen=True, slots=True)
class SuitabilityQueue(SourceQueue):
    """The problems of one source: its samples without an image, optionally of one ``category``."""

    category: str = ""

    round: ClassVar[str] = ROUND
    kind: ClassVar[type[SuitabilityReview]] = SuitabilityReview

    @property
    def key(self) -> TableKey:
        return reviews_key(self.source)

    @property
    def labels(self) -> Path:
        """The lines for calibrating, of all sources."""
        return self.workspace.annotation / "suitability.jsonl"

    def takes(self, sample: Sample) -> bool:
        return not sample.images and not sample.videos and self.category in ("", sample.category)

    def task(self, sample: Sample) -> Mapping[str, Any]:
        return {"page": item_page(sample)}

    def materialize(self) -> StageReport:
        """The source's table, and the label lines."""
        verdicts = read_verdicts(self.journal, ROUND).verdicts
        write_labels(self.labels, (_label(verdict) for verdict in verdicts if verdict.verdict in LABELS))
        return SourceQueue.materialize(self)  # no `super()` in a dataclass with slots

    def agreement(self) -> Calibration:
        """The models' majority vote on this source against people: kappa with its interval.

        Raises ``CalibrationError`` when fewer than 20 problems have both a vote and a label.
        """
        keys = shards_of(self.workspace.tables, (VOTES,), self.source)
        return agreement([Shard(self.workspace, key.partition) for key in keys], [self.source])


def _label(verdict: QueueVerdict) -> dict[str, str]:
    return {
        "row": verdict.item_id,
        "check": CHECK,
        "verdict": LABELS[verdict.verdict],
        "reviewer": verdict.person,
        "reason": verdict.comment,
    }
