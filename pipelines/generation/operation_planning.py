"""The decision which operation a question needs of its image, by the ids of Thyme's table 9; families share it.

    -1 none    1 direction    2 lighting and contrast    3 region of interest, scaling    4 several of these

The policy decides as JSON. It is read from prose, fences and several tries (the last one counts), from ids spelled as
text, and from Thyme's own ``<answer>3</answer>``.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from darkroom.pipelines.generation.recipes import Plan
from darkroom.pipelines.models.parsing import json_objects
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.vision.image_transform import Operation

_ANSWER = re.compile(r"<answer>\s*(-?\d)\s*</answer>", re.IGNORECASE)
_BARE = re.compile(r"\A\s*(-?\d)\s*\Z")
_MAX_ISSUE = 300


class Decision(BaseModel):  # its docstring is sent in the schema: a part of the ledger's keys
    """What was decided. ``primary`` is the operation itself unless it is combined."""

    operation: Operation
    primary: Operation = Operation.NONE
    issue: str = Field(default="", validate_default=True)

    @model_validator(mode="after")
    def _settled(self) -> Self:
        if self.operation != Operation.COMBINED:
            self.primary = self.operation
        elif self.primary not in _SINGLE:
            raise ValueError("a combined operation names its primary one: 1, 2 or 3")
        self.issue = " ".join(self.issue.split())[:_MAX_ISSUE]
        return self

    @property
    def work(self) -> str:
        """Instruction for the image, in words and without a number."""
        several = "more than one thing; above all, " if self.operation is Operation.COMBINED else ""
        return f"{several}{_WORK[self.primary]}"

    @property
    def needs_work(self) -> bool:
        """True if the image must be worked on."""
        return self.operation != Operation.NONE


_SINGLE = (Operation.DIRECTION, Operation.LIGHTING, Operation.REGION)


def plan(*, keeps: Callable[[Decision], bool]) -> Plan:
    """The plan of a family that takes the samples whose decision it ``keeps``; the others are not applicable to it. A
    kept decision becomes the hint's ``operation`` and, in words for the policy, ``work``."""

    def read(text: str, sample: Sample) -> Mapping[str, Any]:
        decided = read_decision(text)
        if keeps(decided):
            return {"operation": int(decided.operation), "work": decided.work}
        name = decided.operation.name.lower()
        raise RowError(Reason.NOT_APPLICABLE, f"decided {int(decided.operation)} ({name}): {decided.issue}")

    return Plan(prompt=bundled_prompt("decision"), read=read, schema=Decision.model_json_schema())


def read_decision(text: str) -> Decision:
    """The last decision in what a policy wrote. Raises ``RowError`` (malformed_turn) when there is none."""
    bare = _BARE.match(text)
    plain_ids = [bare[1]] if bare else _ANSWER.findall(text)
    for candidate in reversed([*({"operation": each} for each in plain_ids), *json_objects(text)]):
        try:
            return Decision.model_validate(candidate)
        except ValidationError:
            continue
    excerpt = " ".join(text.split())[:160]
    expected = '{"issue": …, "operation": -1 to 4, "primary": 1 to 3}'
    raise RowError(Reason.MALFORMED_TURN, f"expected {expected}; found {excerpt!r}")


_WORK = {
    Operation.NONE: "nothing, it can be used as it is.",
    Operation.DIRECTION: "another direction: it has to be turned or mirrored.",
    Operation.LIGHTING: "another lighting: more contrast, or another brightness.",
    Operation.REGION: "a closer look: a part of it has to be cut out or enlarged.",
}
