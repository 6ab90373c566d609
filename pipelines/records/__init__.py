"""The records, as frozen dataclasses; their pyarrow schemas are in ``pipelines/records/schemas.py`` alone.

A ``Sample`` is a question about images with what is known to be true; a ``Trajectory`` is one rollout on it; a
``Reject`` is a row that a stage took out, with the reason. Tables carry ``ImageRef`` (the bytes lie once in the image
store) and no measured times: tables of two runs are equal byte for byte.
"""

from darkroom.pipelines.records.annotation import (
    Annotated as Annotated,
    AnnotationEvent as AnnotationEvent,
    FieldChange as FieldChange,
    PoolImage as PoolImage,
    PreAnnotation as PreAnnotation,
    Review as Review,
    SuitabilityReview as SuitabilityReview,
    Verification as Verification,
)
from darkroom.pipelines.records.reject_reasons import Disposition as Disposition, Reject as Reject
from darkroom.pipelines.records.rl import (
    CheckedLabel as CheckedLabel,
    Difficulty as Difficulty,
    Grader as Grader,
    GraderKind as GraderKind,
    Majority as Majority,
    PassRate as PassRate,
    RLCandidate as RLCandidate,
    RLRow as RLRow,
    SuitabilityLabel as SuitabilityLabel,
    SuitabilityVotes as SuitabilityVotes,
    ToolNecessity as ToolNecessity,
    Votes as Votes,
)
from darkroom.pipelines.records.samples import (
    ImageRef as ImageRef,
    Sample as Sample,
    Truth as Truth,
    TruthBox as TruthBox,
    VideoRef as VideoRef,
)
from darkroom.pipelines.records.schemas import from_row as from_row, to_row as to_row
from darkroom.pipelines.records.trajectories import (
    Check as Check,
    Draft as Draft,
    Edit as Edit,
    LossPolicy as LossPolicy,
    Observation as Observation,
    Provenance as Provenance,
    Round as Round,
    Status as Status,
    Trajectory as Trajectory,
    Usage as Usage,
)
