"""Rejects: the rows that a stage rejected, and the typed reasons with what each one means for the row. ``rejected``:
judged and failed. ``quarantined``: could not be judged (a damaged image, an endpoint that gave up), and may pass once
the cause is mended. ``not_applicable``: no reject, but a row that is not for the family."""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Literal, Self, TypeVar

R = TypeVar("R", bound=StrEnum)
Disposition = Literal["rejected", "quarantined", "not_applicable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A row that a stage took out: the row itself (JSON), the stage, the typed reason and the evidence."""

    stage: str
    family: str = ""
    reason: str
    check: str = ""
    disposition: Disposition
    evidence: str
    source: str = ""
    source_row: str = ""
    sample_id: str = ""
    trajectory_id: str = ""
    row: str = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "disposition", disposition_of(self.reason, self.disposition))

    @property
    def is_applicable(self) -> bool:
        """False for a row that is not for the family, which is counted apart from rejects."""
        return self.disposition != "not_applicable"


class Reason(StrEnum):
    """Every reason for which a stage takes a row out: judged rows are ``rejected``, the others could not be judged."""

    disposition: Disposition

    def __new__(cls, value: str, disposition: Disposition = "quarantined") -> Self:
        reason = str.__new__(cls, value)
        reason._value_, reason.disposition = value, disposition
        return reason

    # intake
    MALFORMED_ROW = "malformed_row"
    WRONG_TYPE = "wrong_type"
    MISSING_IMAGE = "missing_image"
    EMPTY_IMAGE = "empty_image"
    UNREADABLE_IMAGE = "unreadable_image"
    TRUNCATED_IMAGE = "truncated_image"
    ANIMATED_IMAGE = "animated_image"
    MISSING_VIDEO = "missing_video"
    UNREADABLE_VIDEO = "unreadable_video"
    TOO_LARGE_VIDEO = "too_large_video"
    TOO_LARGE_IMAGE = "too_large_image"
    BOX_OUTSIDE_IMAGE = "box_outside_image"
    EXCLUDED = "excluded", "rejected"
    REMOVED = "removed", "rejected"
    DUPLICATE = "duplicate", "rejected"
    MATERIAL_MISSING = "material_missing"
    # prepare
    NOT_APPLICABLE = "not_applicable", "not_applicable"
    UNSUITABLE = "unsuitable", "rejected"
    # draft and run
    NOT_DRAWN = "not_drawn", "rejected"
    POLICY_FAILED = "policy_failed"
    SANDBOX_FAILED = "sandbox_failed"
    TRUNCATED_TURN = "truncated_turn", "rejected"
    WITHHELD_TURN = "withheld_turn", "rejected"
    MALFORMED_TURN = "malformed_turn", "rejected"
    TOO_MANY_ROUNDS = "too_many_rounds", "rejected"
    WRONG_PLAN = "wrong_plan", "rejected"
    # verdicts
    CHECK_FAILED = "check_failed", "rejected"
    # calibration
    ROW_UNKNOWN = "row_unknown", "rejected"
    DISPUTED = "disputed", "rejected"
    # sft_dataset
    STALE = "stale"
    LICENCE_UNKNOWN = "licence_unknown", "rejected"
    NEAR_DUPLICATE = "near_duplicate", "rejected"
    CONTAMINATED = "contaminated", "rejected"
    NOT_SELECTED = "not_selected", "rejected"
    # rl
    GRADER_CANNOT_TELL = "grader_cannot_tell", "rejected"
    LABEL_DISPUTED = "label_disputed"
    WRONG_LABEL = "wrong_label", "rejected"
    TOO_EASY = "too_easy", "rejected"
    NEVER_SOLVED = "never_solved", "rejected"
    TIED = "tied", "rejected"
    NO_VOTE = "no_vote"
    # annotation: images, then records, then single submissions
    TOO_SMALL_IMAGE = "too_small_image", "rejected"
    NOT_CHOSEN = "not_chosen", "rejected"
    WAITING = "waiting"
    REJECTED_BY_PEOPLE = "rejected_by_people", "rejected"
    BROKEN_SUBMISSION = "broken_submission"
    FOREIGN_FRAME = "foreign_frame"
    BREAKS_RULES = "breaks_rules", "rejected"
    FORGED_SUBMISSION = "forged_submission", "rejected"
    WRONG_PERSON = "wrong_person", "rejected"
    DUPLICATE_SUBMISSION = "duplicate_submission", "rejected"
    LATE_EDIT = "late_edit", "rejected"
    # any stage: an error of a recipe or a check, caught so that the run goes on
    STAGE_FAILED = "stage_failed"


def disposition_of(reason: str, stored: Disposition) -> Disposition:
    """Read a stored disposition: tables of earlier versions call rows that are not for a family ``rejected``."""
    return "not_applicable" if reason == Reason.NOT_APPLICABLE else stored


def upgraded_counts(facts: dict[str, Any]) -> dict[str, Any]:
    """A table's facts with inapplicable rows counted apart, as earlier versions did not; facts without rejects stay."""
    if "n_rejected" not in facts or "n_not_applicable" in facts:
        return facts
    n_not_applicable = facts.get("reasons", {}).get(Reason.NOT_APPLICABLE.value, 0)
    return {**facts, "n_rejected": facts["n_rejected"] - n_not_applicable, "n_not_applicable": n_not_applicable}


RETRYABLE = frozenset({Reason.POLICY_FAILED, Reason.SANDBOX_FAILED})
"""Reasons whose cause lies outside the row: a stage that has such rejects is run again by the next materialisation."""


class Refused(Exception, Generic[R]):
    """A row that cannot be used: the reason and the evidence."""

    def __init__(self, reason: R, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason, self.evidence = reason, evidence


class RowError(Refused[Reason]):
    """A row's failure, on its way to becoming a ``Reject``."""


def reject(
    reason: Reason, evidence: str, *, stage: str, row: dict[str, Any], source_row: str = "", **names: str
) -> Reject:
    """The reject of ``row``, which is kept whole, as JSON. Lone surrogates, which no table can hold, become ``?``.
    ``names``: the other fields of a ``Reject`` that are known."""
    return Reject(
        stage=stage,
        reason=reason.value,
        disposition=reason.disposition,
        evidence=storable(evidence),
        source_row=storable(source_row),
        row=storable(json.dumps(row, sort_keys=True, ensure_ascii=False, default=str)),
        **names,
    )


def storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: a lone surrogate (JSON may spell one, a file name too) becomes ``?``."""
    return text.encode("utf-8", "replace").decode()
