"""The records, as frozen dataclasses; ``pipelines/schemas.py`` has them as pyarrow schemas. Nowhere else are schemas.

A ``Sample`` is a question about images with what is known to be true; a ``Trajectory`` is one rollout on it; a
``Reject`` is a row that a stage took out, with the reason. Tables carry ``ImageRef`` (the bytes lie once in the image
store); only exports embed bytes. Measured times are in the ledger, never in a table: tables of two runs are equal
byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

import cattrs

from pipelines.geometry import Box

Status = Literal["ok", "error", "blocked", "timeout", "memory", "killed", "protocol"]
LossPolicy = Literal["last_round", "all_rounds"]
Disposition = Literal["rejected", "quarantined"]
GraderKind = Literal["choice", "number", "text", "list", "maths", "box", "judged"]


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image of the store: ``sha256`` of its bytes; a derived one names its parent and what made it."""

    sha256: str
    width: int
    height: int
    mode: str
    format: str
    parent: str | None = None
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class VideoRef:
    """A video of the store: ``sha256`` of its bytes. ``n_frames`` counts what decodes; ``fps`` is their average."""

    sha256: str
    format: str
    width: int
    height: int
    n_frames: int
    fps: float


@dataclass(frozen=True, slots=True)
class TruthBox:
    """Where something is: pixels of ``images[image]``, top-left origin, right and bottom exclusive."""

    label: str
    x1: int
    y1: int
    x2: int
    y2: int
    image: int = 0

    @property
    def box(self) -> Box:
        """The rectangle alone."""
        return Box(self.x1, self.y1, self.x2, self.y2)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known about a sample. Privileged: no policy sees it unless the recipe says so."""

    boxes: tuple[TruthBox, ...] = ()
    angle: float | None = None
    contrast: float | None = None
    count: int | None = None
    details: str | None = None
    """Anything else, as JSON (a maths problem's verifier and its parameters, for instance)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question about images. ``sample_id`` is the digest of its content, wherever it came from."""

    sample_id: str
    source: str
    source_row: str
    license: str
    images: tuple[ImageRef, ...]
    question: str
    choices: tuple[str, ...]
    answer: str
    truth: Truth
    category: str
    videos: tuple[VideoRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One rewrite that the sandbox made to the code."""

    kind: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What came back from one execution; the images that it shows are references into the store."""

    status: Status
    text: str
    images: tuple[ImageRef, ...] = ()
    error: str | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of a policy that wrote code, and what the sandbox answered."""

    thought: str
    code: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Check:
    """One check's verdict: ``reason`` names the flaw if there is one, ``score`` is what was measured, ``detail`` the
    evidence for a person. ``version`` is the check's own. ``n_trials`` counts the votes or answers of which ``score``
    is a share; 0 where it is none."""

    name: str
    passed: bool
    score: float | None = None
    detail: str = ""
    reason: str = ""
    version: int = 1
    n_trials: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the policy was paid for. ``cost_usd`` is 0 where the policy has no price."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.calls - other.calls,
            self.prompt_tokens - other.prompt_tokens,
            self.completion_tokens - other.completion_tokens,
            self.cost_usd - other.cost_usd,
        )


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that determined a trajectory: policy, model and revision, sampling (JSON), prompt, sandbox, seed, code."""

    policy: str
    model: str
    revision: str
    sampling: str
    prompt_digest: str
    sandbox_digest: str
    seed: int
    code_version: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The opening turn of a rollout: what the policy wrote before anything was executed."""

    trajectory_id: str
    sample_id: str
    family: str
    images: tuple[ImageRef, ...]
    """What the policy sees: the sample's images, or what the recipe made of them (rotated, faded)."""
    hint: str
    """What the recipe told the policy or did to the images, as JSON: privileged."""
    text: str
    usage: Usage
    provenance: Provenance
    mode: str = "free"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout: rounds of thought, code and observation, then the answer."""

    trajectory_id: str
    sample_id: str
    family: str
    protocol: str
    images: tuple[ImageRef, ...]
    rounds: tuple[Round, ...]
    final_thought: str
    answer: str
    loss_policy: LossPolicy
    checks: tuple[Check, ...]
    usage: Usage
    provenance: Provenance
    mode: str = "free"
    """Which of the protocol's system prompts opens the conversation."""

    @property
    def passed(self) -> bool:
        """Whether every check passed; a trajectory that was not checked has not passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def shown_images(self) -> tuple[ImageRef, ...]:
        """Every image of the row, in the order in which it appears."""
        return self.images + tuple(image for turn in self.rounds for image in turn.observation.images)


@dataclass(frozen=True, slots=True)
class PoolImage:
    """An image that people shall write questions about. Its ``sha256`` is the item's name in every round."""

    image: ImageRef
    source: str
    source_row: str
    license: str


@dataclass(frozen=True, slots=True)
class PreAnnotation:
    """What a policy drafted about an image of the pool, for people to correct."""

    sha256: str
    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[TruthBox, ...]
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Change:
    """What a checker or an expert changed of a record: a field, before and after (boxes as JSON)."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AnnotationEvent:
    """One person's work on a record: who (e-mail address), when (ISO 8601, UTC), how long, and what came of it."""

    round: str
    attempt: int
    person: str
    at: str
    lead_seconds: float | None
    verdict: str
    reasons: tuple[str, ...]
    comment: str
    blind_answer: str
    """What a checker answered before seeing the record's answer."""
    blind_match: bool | None
    """Whether that was the record's answer; None where nobody was asked."""
    changes: tuple[Change, ...]
    task_id: int
    annotation_id: int


@dataclass(frozen=True, slots=True)
class Annotated:
    """A question that people wrote about an image, with the boxes of its targets and the record's whole history."""

    image: ImageRef
    source: str
    source_row: str
    license: str
    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[TruthBox, ...]
    attempt: int
    pre_annotated: bool
    """Whether a policy's draft was shown to the first person."""
    history: tuple[AnnotationEvent, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """One expert's verdict on a trajectory."""

    trajectory_id: str
    family: str
    accepted: bool
    reasons: tuple[str, ...]
    comment: str
    reviewer: str
    at: str
    lead_seconds: float | None


@dataclass(frozen=True, slots=True)
class Verification:
    """One person's word on whether image, question and answer of a sample belong together."""

    sample_id: str
    verdict: Literal["match", "mismatch", "unsure"]
    comment: str
    reviewer: str
    at: str
    lead_seconds: float | None


@dataclass(frozen=True, slots=True)
class Grader:
    """How answers to one question are graded: by which rule, and what the rule needs to know."""

    kind: GraderKind
    tolerance: float = 0.0
    """``number``: how far off an answer may be, as a share of the right one. ``box``: the least overlap (IoU)."""
    unit: str = ""
    """``number``: the unit of an answer that names none."""
    is_ordered: bool = False
    """``list``: whether the order counts."""


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


R = TypeVar("R")


@cache
def _converter() -> cattrs.Converter:
    return cattrs.Converter(forbid_extra_keys=True)


def to_row(record: Any) -> dict[str, Any]:
    """A record (or a part of one) as plain dicts, lists and scalars."""
    row: dict[str, Any] = _converter().unstructure(record)
    return row


def from_row(kind: type[R], row: Mapping[str, Any]) -> R:
    """The record of a row. Raises ``cattrs.BaseValidationError`` when the row does not have its fields."""
    return _converter().structure(row, kind)
