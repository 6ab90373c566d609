"""Moments of a video that a question is about: privileged facts, kept as JSON in ``Truth.details``.

    {"moments": [{"label": "street sign", "first": 17, "end": 29, "video": 0}]}

Frames are counted from 0; ``end`` lies just behind the last one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.records import Sample


@dataclass(frozen=True, slots=True)
class Moment:
    """Frames ``first`` to ``end`` (exclusive) of ``sample.videos[video]``."""

    label: str
    first: int
    end: int
    video: int = 0


class _Moment(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    label: str = ""
    first: int = Field(ge=0)
    end: int
    video: int = Field(default=0, ge=0)


class _Details(BaseModel):
    model_config = ConfigDict(extra="ignore")

    moments: list[_Moment] = []


def as_details(moments: Sequence[Moment]) -> str:
    """The moments as ``Truth.details`` holds them."""
    return json.dumps({"moments": [asdict(moment) for moment in moments]})


def moments_of(sample: Sample) -> tuple[Moment, ...]:
    """The sample's moments, in its truth's order; none where its truth names none.

    Raises ``ValueError`` for a moment that no video of the sample has.
    """
    if not sample.truth.details:
        return ()
    try:
        found = _Details.model_validate_json(sample.truth.details).moments
    except ValidationError as fault:
        raise ValueError(f"the truth's details are not moments: {fault.errors()[0]['msg']}") from fault
    moments = tuple(Moment(moment.label, moment.first, moment.end, moment.video) for moment in found)
    for moment in moments:
        n_frames = sample.videos[moment.video].n_frames if moment.video < len(sample.videos) else 0
        if not moment.first < moment.end <= n_frames:
            raise ValueError(f"no video has the moment {moment}: its frames are 0 to {n_frames - 1}")
    return moments
