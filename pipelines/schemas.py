"""The records as pyarrow schemas, field for field those of ``pipelines/records``, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from pipelines.records import (
    Annotated,
    CheckedLabel,
    Draft,
    PassRate,
    PoolImage,
    PreAnnotation,
    Reject,
    Review,
    RLCandidate,
    RLRow,
    Sample,
    SuitabilityLabel,
    SuitabilityReview,
    SuitabilityVotes,
    ToolNecessity,
    Trajectory,
    Verification,
    from_row,
    to_row,
)

R = TypeVar("R")


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct(list(fields.items()))


def _schema(**fields: pa.DataType) -> pa.Schema:
    return pa.schema(list(fields.items()))


_text, _int, _float, _bool = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_image = _struct(sha256=_text, width=_int, height=_int, mode=_text, format=_text, parent=_text, made_by=_text)
_box = _struct(label=_text, x1=_int, y1=_int, x2=_int, y2=_int, image=_int)
_truth = _struct(boxes=pa.list_(_box), angle=_float, contrast=_float, count=_int, details=_text)
_edit = _struct(kind=_text, before=_text, after=_text)
_observation = _struct(status=_text, text=_text, images=pa.list_(_image), error=_text, edits=pa.list_(_edit))
_round = _struct(thought=_text, code=_text, observation=_observation)
_check = _struct(name=_text, passed=_bool, score=_float, detail=_text, reason=_text, version=_int, n_trials=_int)
_video = _struct(sha256=_text, format=_text, width=_int, height=_int, n_frames=_int, fps=_float)
_usage = _struct(calls=_int, prompt_tokens=_int, completion_tokens=_int, cost_usd=_float)
_votes = _struct(
    judge=_text,
    ballots=pa.list_(_bool),
    n_wanted=_int,
    reasons=pa.list_(_text),
    usage=_usage,
    threshold=_float,
)
_grader = _struct(kind=_text, tolerance=_float, unit=_text, is_ordered=_bool)
_change = _struct(name=_text, before=_text, after=_text)
_annotation_event = _struct(
    round=_text,
    attempt=_int,
    person=_text,
    at=_text,
    lead_seconds=_float,
    verdict=_text,
    reasons=pa.list_(_text),
    comment=_text,
    blind_answer=_text,
    blind_match=_bool,
    changes=pa.list_(_change),
    task_id=_int,
    annotation_id=_int,
)
_provenance = _struct(
    policy=_text,
    model=_text,
    revision=_text,
    sampling=_text,
    prompt_digest=_text,
    sandbox_digest=_text,
    seed=_int,
    code_version=_text,
)

SAMPLE = _schema(
    sample_id=_text,
    source=_text,
    source_row=_text,
    license=_text,
    images=pa.list_(_image),
    question=_text,
    choices=pa.list_(_text),
    answer=_text,
    truth=_truth,
    category=_text,
    videos=pa.list_(_video),
)
DRAFT = _schema(
    trajectory_id=_text,
    sample_id=_text,
    family=_text,
    images=pa.list_(_image),
    hint=_text,
    text=_text,
    usage=_usage,
    provenance=_provenance,
    mode=_text,
)
TRAJECTORY = _schema(
    trajectory_id=_text,
    sample_id=_text,
    family=_text,
    protocol=_text,
    images=pa.list_(_image),
    rounds=pa.list_(_round),
    final_thought=_text,
    answer=_text,
    loss_policy=_text,
    checks=pa.list_(_check),
    usage=_usage,
    provenance=_provenance,
    mode=_text,
)
REJECT = _schema(
    stage=_text,
    family=_text,
    reason=_text,
    check=_text,
    disposition=_text,
    evidence=_text,
    source=_text,
    source_row=_text,
    sample_id=_text,
    trajectory_id=_text,
    row=_text,
)
POOL_IMAGE = _schema(image=_image, source=_text, source_row=_text, license=_text)
PRE_ANNOTATION = _schema(
    sha256=_text,
    question=_text,
    answer=_text,
    category=_text,
    count=_int,
    boxes=pa.list_(_box),
    model=_text,
    usage=_usage,
)
ANNOTATED = _schema(
    image=_image,
    source=_text,
    source_row=_text,
    license=_text,
    question=_text,
    answer=_text,
    category=_text,
    count=_int,
    boxes=pa.list_(_box),
    attempt=_int,
    pre_annotated=_bool,
    history=pa.list_(_annotation_event),
)
REVIEW = _schema(
    trajectory_id=_text,
    family=_text,
    accepted=_bool,
    reasons=pa.list_(_text),
    comment=_text,
    reviewer=_text,
    at=_text,
    lead_seconds=_float,
)
SUITABILITY_REVIEW = _schema(
    sample_id=_text, verdict=_text, comment=_text, reviewer=_text, at=_text, lead_seconds=_float
)
VERIFICATION = _schema(sample_id=_text, verdict=_text, comment=_text, reviewer=_text, at=_text, lead_seconds=_float)
CANDIDATE = _schema(sample_id=_text, grader=_grader, checks=pa.list_(_check), usage=_usage)
CHECKED_LABEL = _schema(sample_id=_text, votes=_votes, verified_by=_text)
PASS_RATE = _schema(sample_id=_text, votes=_votes, never_solved=_bool)
TOOL_NECESSITY = _schema(sample_id=_text, forced=_votes, forbidden=_votes)
SUITABILITY_VOTES = _schema(sample_id=_text, votes=_votes)
SUITABILITY_LABEL = _schema(
    sample_id=_text,
    suitable=_bool,
    majority=_text,
    n_yes=_int,
    n_no=_int,
    n_invalid=_int,
    judge=_text,
)
RL_ROW = _schema(
    sample=pa.struct(list(SAMPLE)),
    grader=_grader,
    origin=_text,
    difficulty=_text,
    pass_rate=pa.struct(list(PASS_RATE)),
    necessity=pa.struct(list(TOOL_NECESSITY)),
    suitability=pa.struct(list(SUITABILITY_LABEL)),
)

SCHEMAS: Mapping[type[Any], pa.Schema] = {
    Sample: SAMPLE,
    Draft: DRAFT,
    Trajectory: TRAJECTORY,
    PoolImage: POOL_IMAGE,
    PreAnnotation: PRE_ANNOTATION,
    Annotated: ANNOTATED,
    Review: REVIEW,
    SuitabilityReview: SUITABILITY_REVIEW,
    Verification: VERIFICATION,
    RLCandidate: CANDIDATE,
    CheckedLabel: CHECKED_LABEL,
    PassRate: PASS_RATE,
    ToolNecessity: TOOL_NECESSITY,
    SuitabilityVotes: SUITABILITY_VOTES,
    SuitabilityLabel: SUITABILITY_LABEL,
    RLRow: RL_ROW,
    Reject: REJECT,
}


def to_table(kind: type[R], records: Iterable[R]) -> pa.Table:
    """Records of one kind as a table of that kind's schema."""
    return pa.Table.from_pylist([to_row(record) for record in records], schema=SCHEMAS[kind])


def from_table(kind: type[R], table: pa.Table) -> list[R]:
    """The records of a table."""
    return [from_row(kind, row) for row in table.to_pylist()]
