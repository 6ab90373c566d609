"""What can go wrong with a layout: one row that cannot be said in it, or the whole export.

LayoutFault     the dataset or the output folder is not what it should be: nothing is written
Unrenderable    one row: it becomes a line of ``rejects.jsonl``, and the export goes on
"""

from __future__ import annotations

from enum import StrEnum


class Unfit(StrEnum):
    """Every reason for which an export takes a row out."""

    MALFORMED_ROW = "malformed_row"
    UNKNOWN_PROTOCOL = "unknown_protocol"
    MALFORMED_TURN = "malformed_turn"
    MISSING_IMAGE = "missing_image"
    CHANGED_IMAGE = "changed_image"
    IMAGES_DIFFER = "images_differ"
    EMPTY_TURN = "empty_turn"
    ROLES_DIFFER = "roles_differ"
    IMAGES_UNSUPPORTED = "images_unsupported"
    VIDEOS_UNSUPPORTED = "videos_unsupported"
    DUPLICATE_PROMPT = "duplicate_prompt"


class LayoutFault(Exception):
    """The export cannot be made: what was expected, what was found, what to do."""


class Unrenderable(Exception):
    """A row that the layout cannot hold: the typed reason and the evidence."""

    def __init__(self, reason: Unfit, evidence: str) -> None:
        super().__init__(f"{reason}: {evidence}")
        self.reason = reason
        self.evidence = evidence
