"""The verdicts of several people on one version of a record, each given without knowing the others'.

A verdict names a version: acceptance the record as it is, a fix the corrected one, a rejection none. The record passes
in the version that more than half of the verdicts name (``majority``), or all of them (``unanimity``); without such a
version it is sent back. The order of the verdicts does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from darkroom.annotation.rounds.campaign import Rule
from darkroom.annotation.rounds.submissions import RecordFields


class Verdict(NamedTuple):
    """One person's; ``version`` is None for a rejection, which has reasons."""

    person_id: int
    version: RecordFields | None
    reasons: tuple[str, ...] = ()


def common_version(verdicts: Sequence[Verdict], rule: Rule) -> RecordFields | None:
    """The version that enough verdicts name; None if there is none."""
    n_enough = len(verdicts) if rule == "unanimity" else len(verdicts) // 2 + 1
    versions = [(_content(verdict.version), verdict.version) for verdict in verdicts if verdict.version is not None]
    counts = Counter(content for content, _ in versions)
    named = [version for content, version in versions if counts[content] >= n_enough]
    return min(named, key=lambda version: version.boxes, default=None)


def why_sent_back(verdicts: Sequence[Verdict], round: str) -> str:
    """For the record's reason, when it is not sent back any more."""
    reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
    if reasons:
        return f"rejected in {round} for {', '.join(reasons)}"
    return f"rejected in {round}: {len(verdicts)} verdicts fix it in different ways"


def _content(fields: RecordFields) -> Hashable:
    """Boxes as a set: their order is only the order of drawing."""
    return fields.question, fields.answer, fields.category, fields.count, frozenset(fields.boxes)
