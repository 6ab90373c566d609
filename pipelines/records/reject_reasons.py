"""Rejects: the rows that a stage rejected, and the typed reasons with what each one means for the row.

``rejected``: judged and failed. ``quarantined``: could not be judged, and may pass once the cause is mended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Disposition = Literal["rejected", "quarantined"]


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


class Reason(StrEnum):
    """Every reason for which a stage takes a row out."""

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
    EXCLUDED = "excluded"
    DUPLICATE = "duplicate"
    MATERIAL_MISSING = "material_missing"
    # prepare
    NOT_APPLICABLE = "not_applicable"
    UNSUITABLE = "unsuitable"
    # draft and run
    NOT_DRAWN = "not_drawn"
    POLICY_FAILED = "policy_failed"
    SANDBOX_FAILED = "sandbox_failed"
    TRUNCATED_TURN = "truncated_turn"
    MALFORMED_TURN = "malformed_turn"
    TOO_MANY_ROUNDS = "too_many_rounds"
    WRONG_PLAN = "wrong_plan"
    # verdicts
    CHECK_FAILED = "check_failed"
    # calibration
    ROW_UNKNOWN = "row_unknown"
    DISPUTED = "disputed"
    # sft_dataset
    STALE = "stale"
    NEAR_DUPLICATE = "near_duplicate"
    CONTAMINATED = "contaminated"
    NOT_SELECTED = "not_selected"
    # rl
    GRADER_CANNOT_TELL = "grader_cannot_tell"
    LABEL_DISPUTED = "label_disputed"
    WRONG_LABEL = "wrong_label"
    TOO_EASY = "too_easy"
    NEVER_SOLVED = "never_solved"
    TIED = "tied"
    NO_VOTE = "no_vote"
    # annotation: images, then records, then single submissions
    TOO_SMALL_IMAGE = "too_small_image"
    NOT_CHOSEN = "not_chosen"
    WAITING = "waiting"
    REJECTED_BY_PEOPLE = "rejected_by_people"
    BROKEN_SUBMISSION = "broken_submission"
    FOREIGN_FRAME = "foreign_frame"
    BREAKS_RULES = "breaks_rules"
    FORGED_SUBMISSION = "forged_submission"
    WRONG_PERSON = "wrong_person"
    DUPLICATE_SUBMISSION = "duplicate_submission"
    LATE_EDIT = "late_edit"
    # any stage: an error of a recipe or a check, caught so that the run goes on
    STAGE_FAILED = "stage_failed"


_REJECTED = {
    Reason.EXCLUDED,
    Reason.DUPLICATE,
    Reason.NOT_APPLICABLE,
    Reason.UNSUITABLE,
    Reason.TRUNCATED_TURN,
    Reason.MALFORMED_TURN,
    Reason.TOO_MANY_ROUNDS,
    Reason.WRONG_PLAN,
    Reason.CHECK_FAILED,
    Reason.NEAR_DUPLICATE,
    Reason.CONTAMINATED,
    Reason.NOT_DRAWN,
    Reason.NOT_SELECTED,
    Reason.ROW_UNKNOWN,
    Reason.DISPUTED,
    Reason.WRONG_LABEL,
    Reason.TOO_EASY,
    Reason.NEVER_SOLVED,
    Reason.TIED,
    Reason.GRADER_CANNOT_TELL,
    Reason.TOO_SMALL_IMAGE,
    Reason.NOT_CHOSEN,
    Reason.REJECTED_BY_PEOPLE,
    Reason.BREAKS_RULES,
    Reason.FORGED_SUBMISSION,
    Reason.WRONG_PERSON,
    Reason.DUPLICATE_SUBMISSION,
    Reason.LATE_EDIT,
}

RETRYABLE = frozenset({Reason.POLICY_FAILED, Reason.SANDBOX_FAILED})
"""Reasons whose cause lies outside the row: a stage that has such rejects is run again by the next materialisation."""


class RowError(Exception):
    """A row's failure, on its way to becoming a ``Reject``: the reason and the evidence."""

    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason = reason
        self.evidence = evidence


def disposition(reason: Reason) -> Disposition:
    """Whether rows with this reason were judged (``rejected``) or could not be (``quarantined``)."""
    return "rejected" if reason in _REJECTED else "quarantined"


def reject(
    reason: Reason,
    evidence: str,
    *,
    stage: str,
    row: dict[str, Any],
    family: str = "",
    check: str = "",
    source: str = "",
    source_row: str = "",
    sample_id: str = "",
    trajectory_id: str = "",
) -> Reject:
    """The reject of ``row``, which is kept whole, as JSON. Lone surrogates, which no table can hold, become ``?``."""
    return Reject(
        stage=stage,
        family=family,
        reason=reason.value,
        check=check,
        disposition=disposition(reason),
        evidence=storable(evidence),
        source=source,
        source_row=storable(source_row),
        sample_id=sample_id,
        trajectory_id=trajectory_id,
        row=storable(json.dumps(row, sort_keys=True, ensure_ascii=False, default=str)),
    )


def storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: a lone surrogate (JSON may spell one, a file name too) becomes ``?``."""
    return text.encode("utf-8", "replace").decode()
