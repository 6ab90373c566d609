"""Records of people's work on images, trajectories and samples; labels of answers that no model gave."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from darkroom.pipelines.records.samples import ImageRef, TruthBox
from darkroom.pipelines.records.trajectories import Usage


@dataclass(frozen=True, slots=True)
class _FromPool:
    image: ImageRef
    source: str
    source_row: str
    license: str


@dataclass(frozen=True, slots=True)
class PoolImage(_FromPool):
    """An image to write questions about, named by ``sha256``; boxes are in pixels of ``image``, not of its ``view``."""

    view: ImageRef | None = None
    """The whole image reduced, where it is too large for a browser."""

    @property
    def shown(self) -> ImageRef:
        """The image that people see: a smaller view of a large one."""
        return self.view or self.image


@dataclass(frozen=True, slots=True)
class PreAnnotation:
    """Draft of a policy about an image of the pool, for people to correct."""

    sha256: str
    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[TruthBox, ...]
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A checker's or expert's change of a record: a field, before and after (boxes as JSON)."""

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
    """Whether that was the record's answer; None where no checker answered."""
    changes: tuple[FieldChange, ...]
    task_id: int
    annotation_id: int


@dataclass(frozen=True, slots=True)
class Annotated(_FromPool):
    """A question that people wrote about an image, with the boxes of its targets and the record's whole history."""

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
class _Opinion:
    sample_id: str
    verdict: str
    comment: str
    reviewer: str
    at: str
    lead_seconds: float | None


@dataclass(frozen=True, slots=True)
class Verification(_Opinion):
    """One person's word on whether image, question and answer of a sample belong together."""

    verdict: Literal["match", "mismatch", "unsure"]


@dataclass(frozen=True, slots=True)
class SuitabilityReview(_Opinion):
    """One person's word on whether a drawing would help to solve a problem."""

    verdict: Literal["yes", "no", "unsure"]


STAND_INS = {
    "oracle": "the embedded oracle (a script that knows the truth; no model)",
    "embedded": "an embedded rule (measured; no model)",
}
"""By the name under which votes, passes and trajectories are signed."""
SIMULATED = "simulated by the embedded oracle (drawn by a script; no model was measured)"
Annotators = Literal["people", "simulated people"]


def asked(name: str) -> str:
    """Who was asked, for readers: a stand-in is called one, a model by its name."""
    return STAND_INS.get(name, name)


def writer_in_words(policy: str, model: str) -> str:
    """Who wrote a trajectory, for readers, by its provenance: ``openai (qwen)``, or the name of a stand-in."""
    return STAND_INS.get(policy, f"{policy} ({model})")


def measured_on(names: Iterable[str]) -> str:
    """On whom a pass rate, an accuracy or a vote was measured: ``measured on qwen``, or that it is simulated."""
    models = sorted(set(names))
    real = [name for name in models if name not in STAND_INS]
    parts = [f"measured on {', '.join(real)}"] if real else []
    parts += [SIMULATED if name == "oracle" else asked(name) for name in models if name in STAND_INS]
    return "; ".join(parts) or "not measured"
