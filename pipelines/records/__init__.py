"""The records, as frozen dataclasses; ``pipelines/records/schemas.py`` has them as pyarrow schemas. Nowhere else are
schemas.

A ``Sample`` is a question about images with what is known to be true; a ``Trajectory`` is one rollout on it; a
``Reject`` is a row that a stage took out, with the reason. Tables carry ``ImageRef`` (the bytes lie once in the image
store); only exports embed bytes. Measured times are in the ledger, never in a table: tables of two runs are equal
byte for byte.
"""

from darkroom.pipelines.records.annotation import (
    Annotated,
    AnnotationEvent,
    FieldChange,
    PoolImage,
    PreAnnotation,
    Review,
    SuitabilityReview,
    Verification,
)
from darkroom.pipelines.records.reject_reasons import Disposition, Reject
from darkroom.pipelines.records.rl import (
    CheckedLabel,
    Difficulty,
    Grader,
    GraderKind,
    Majority,
    PassRate,
    RLCandidate,
    RLRow,
    SuitabilityLabel,
    SuitabilityVotes,
    ToolNecessity,
    Votes,
)
from darkroom.pipelines.records.samples import ImageRef, Sample, Truth, TruthBox, VideoRef
from darkroom.pipelines.records.schemas import from_row, to_row
from darkroom.pipelines.records.trajectories import (
    Check,
    Draft,
    Edit,
    LossPolicy,
    Observation,
    Provenance,
    Round,
    Status,
    Trajectory,
    Usage,
)

__all__ = [
    "Annotated",
    "AnnotationEvent",
    "Check",
    "CheckedLabel",
    "Difficulty",
    "Disposition",
    "Draft",
    "Edit",
    "FieldChange",
    "Grader",
    "GraderKind",
    "ImageRef",
    "LossPolicy",
    "Majority",
    "Observation",
    "PassRate",
    "PoolImage",
    "PreAnnotation",
    "Provenance",
    "RLCandidate",
    "RLRow",
    "Reject",
    "Review",
    "Round",
    "Sample",
    "Status",
    "SuitabilityLabel",
    "SuitabilityReview",
    "SuitabilityVotes",
    "ToolNecessity",
    "Trajectory",
    "Truth",
    "TruthBox",
    "Usage",
    "Verification",
    "VideoRef",
    "Votes",
    "from_row",
    "to_row",
]
