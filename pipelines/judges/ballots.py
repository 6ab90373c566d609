"""A vote in words: a JSON object with a verdict, and the reason before it."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from pipelines.policies.base import Completion
from pipelines.structured import json_objects
from pipelines.voting import Ballot


class YesOrNo(BaseModel):
    """What a vote must be, also as the JSON schema that the endpoint is sent."""

    reason: str = ""
    verdict: bool


SCHEMA = YesOrNo.model_json_schema()


def yes_or_no(said: Completion) -> Ballot:
    """The last JSON object of an answer that is one; models reason first, and put fences around it."""
    for candidate in reversed(list(json_objects(said.text))):
        try:
            answer = YesOrNo.model_validate(candidate)
        except ValidationError:
            continue
        return Ballot(answer.verdict, answer.reason)
    return Ballot(None)
