"""A sample, what it shows, and what its source knows beyond the answer: privileged, JSON in ``Truth.details``.

    {"moments": [{"label": "street sign", "first": 17, "end": 29, "video": 0}]}
    {"worked": {"idea": "…", "steps": ["…"], "programs": ["…"], "seen": "…", "drawn": false}}

``moments`` are the frames of a video that a question is about, counted from 0; ``end`` lies just behind the last one.
``worked`` is how a problem is solved: an idea, the steps in words, code that computes (the first) and verifies (the
second, if any), and what is seen then.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError

FRAME = "frame "
"""How ``made_by`` of a video's frame begins; its number follows, and ``parent`` is the video."""

IMAGE_MARK = "<image>"
"""In a question or its choices, once for each image: where it stands. Without marks the images come first."""
_EARLIER, _NOW = "Earlier turns:\n", "\n\nThe question:\n"


def with_context(turns: Sequence[str]) -> str:
    """The last of turns of user and assistant, a question, after the turns before it."""
    earlier = "\n".join(f"{('User', 'Assistant')[n % 2]}: {text}" for n, text in enumerate(turns[:-1]))
    return f"{_EARLIER}{earlier}{_NOW}{turns[-1]}" if earlier else turns[-1]


def own_question(question: str) -> str:
    """The question without the turns before it."""
    return question.rpartition(_NOW)[2] if question.startswith(_EARLIER) else question


def numbered_marks(texts: Iterable[str]) -> list[str]:
    """Texts for readers who see their images apart: ``[image 1]`` for the first mark, ``[image 2]`` for the second."""
    numbers = count(1)
    return [re.sub(IMAGE_MARK, lambda _: f"[image {next(numbers)}]", text) for text in texts]


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
    """A video of the store: ``sha256`` of its bytes. ``n_frames`` counts what decodes; ``fps`` is their average. A part
    names its film, which is not stored, and its times there."""

    sha256: str
    format: str
    width: int
    height: int
    n_frames: int
    fps: float
    parent: str | None = None
    made_by: str | None = None


@dataclass(frozen=True, slots=True)
class TruthBox:
    """Place of a target: pixels of ``images[image]``, top-left origin, right and bottom exclusive."""

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
    """Known facts of a sample. Privileged: no policy sees it unless the recipe says so."""

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


def is_licensed(license: str) -> bool:
    """True if a licence is stated, for all parts of a compound one (``CC0-1.0 AND MIT``)."""
    return _UNSTATED.isdisjoint(part.strip() for part in license.casefold().split(" and "))


_UNSTATED = {"", "unknown", "not stated"}
LICENCE_REMEDY = "state `license` in the source's file (or campaign.yaml), or set DARKROOM_SHIP_UNLICENSED=1"
"""For rows of unknown licence, which do not ship."""


def bare_sample(sample_id: str, question: str, images: tuple[ImageRef, ...] = (), **known: Any) -> Sample:
    """A question without an answer; of its other fields the ``known`` ones, the rest empty."""
    empty = {
        "choices": (),
        "truth": Truth(),
        **dict.fromkeys(("source", "source_row", "license", "answer", "category"), ""),
    }
    return Sample(sample_id=sample_id, question=question, images=images, **{**empty, **known})


@dataclass(frozen=True, slots=True)
class TemporalSegment:
    """Frames ``first`` to ``end`` (exclusive) of ``sample.videos[video]``."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    label: Annotated[str, Field(default="")]
    first: Annotated[int, Field(ge=0)]
    end: int
    video: Annotated[int, Field(ge=0)] = 0


class _Details(BaseModel):
    moments: tuple[TemporalSegment, ...] = ()


def as_details(moments: Sequence[TemporalSegment]) -> str:
    return json.dumps({"moments": [asdict(moment) for moment in moments]})


def temporal_segments(sample: Sample) -> tuple[TemporalSegment, ...]:
    """The moments of a sample's truth, in order. Raises ``ValueError`` for a moment that no video of it has."""
    if not sample.truth.details:
        return ()
    try:
        moments = _Details.model_validate_json(sample.truth.details).moments
    except ValidationError as error:
        raise ValueError(f"the truth's details are not moments: {error.errors()[0]['msg']}") from error
    for moment in moments:
        n_frames = sample.videos[moment.video].n_frames if moment.video < len(sample.videos) else 0
        if not moment.first < moment.end <= n_frames:
            raise ValueError(f"no video has the moment {moment}: its frames are 0 to {n_frames - 1}")
    return moments


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSolution:
    """Solution of a problem. ``drawn``: its first program draws a figure."""

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


ACCEPTED = "accepted_answers"
"""In ``truth.details``: other answers than the sample's that are right."""


def right_answers(sample: Sample) -> tuple[str, ...]:
    """The sample's answer, and all that its source accepts besides."""
    accepted = details_of(sample).get(ACCEPTED) if ACCEPTED in (sample.truth.details or "") else ()
    return (sample.answer, *map(str, accepted or ()))


FAMILIES = "families"
"""In ``truth.details``: the families that may use the sample; where it is not there, all may."""


FOUND = "found"
"""In ``truth.details``: how one finds the target; where it is not there, it is measured (``vision/visibility.py``)."""


def families_of(sample: Sample) -> tuple[str, ...] | None:
    """The families that the source keeps the sample for; None: any, also in details that are no JSON."""
    if not sample.truth.details or FAMILIES not in sample.truth.details:
        return None
    try:
        families = details_of(sample).get(FAMILIES)
    except ValueError:
        return None
    if isinstance(families, str):
        return (families,) if families else None
    return tuple(map(str, families)) if isinstance(families, list) else None


def reference_solution(sample: Sample) -> ReferenceSolution:
    """Solution of the sample. Raises ``RowError`` (unsuitable) where its source has none: only a model can."""
    solution = details_of(sample).get("worked")
    if solution is None:
        raise RowError(Reason.UNSUITABLE, "the source knows no program for this problem; only a model can write one")
    return ReferenceSolution(**{**solution, "steps": tuple(solution["steps"]), "programs": tuple(solution["programs"])})
