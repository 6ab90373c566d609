"""The report of an audit: findings by kind, and how much was compared or could not be."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

MAX_FINDINGS = 10_000
"""Kept with their rows; further ones are counted only, so that an audit of a bad release fits into memory."""
_MAX_DETAIL = 300
_COUNTS = ("n_rows", "n_rounds", "n_executed", "n_images", "n_replayed", "n_same", "n_other_sandbox")


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A contradiction to what the dataset says. ``round`` counts from 1; 0 where it is no round's."""

    kind: str
    """``replay: pixels``, ``check: upright``, ``card``, ``votes``: the table's first column."""
    dataset: str
    row: str
    """The row's id, or its place in a file; empty for a finding of the dataset as a whole."""
    reason: str
    round: int = 0


@dataclass(slots=True)
class AuditReport:
    """The result of an audit. Its counts say how much of the dataset was examined."""

    n_rows: int = 0
    n_rounds: int = 0
    n_images: int = 0
    """Images of observations that were compared."""
    n_executed: int = 0
    """Rounds whose observation was compared."""
    n_replayed: int = 0
    n_same: int = 0
    """Replayed rows whose observations are all equal."""
    n_other_sandbox: int = 0
    """Replayed rows that another version of the sandbox made, equal or not."""
    checked: Counter[str] = field(default_factory=Counter)
    """Rows by the check or count that was done again."""
    not_measured: Counter[str] = field(default_factory=Counter)
    """Rows by what could not be done, and why."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Findings by kind, all of them."""
    findings: list[AuditFinding] = field(default_factory=list)
    """The first ``MAX_FINDINGS``."""
    notes: list[str] = field(default_factory=list)
    """Further lines for people, such as how many tokens the rows have."""

    def add(self, findings: Iterable[AuditFinding]) -> None:
        """Counts findings, and keeps them while there is room."""
        for finding in findings:
            self.kinds[finding.kind] += 1
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(finding)

    def take(self, part: Self) -> None:
        """Add the report of a row or a part."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.checked.update(part.checked)
        self.not_measured.update(part.not_measured)
        self.kinds.update(part.kinds)
        self.findings += part.findings[: MAX_FINDINGS - len(self.findings)]
        self.notes += part.notes

    @property
    def rate(self) -> float:
        """Share of replayed rows that are equal; 1.0 if none was replayed."""
        return self.n_same / self.n_replayed if self.n_replayed else 1.0

    @property
    def n_findings(self) -> int:
        """Number of all findings, including those that are only counted."""
        return self.kinds.total()

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _COUNTS},
            "n_findings": self.n_findings,
            "kinds": dict(sorted(self.kinds.items())),
            "checked": dict(sorted(self.checked.items())),
            "not_measured": dict(sorted(self.not_measured.items())),
            "notes": self.notes,
            "findings": [
                {"kind": finding.kind, "dataset": finding.dataset, "row": finding.row, "round": finding.round}
                | {"reason": finding.reason}
                for finding in self.findings
            ],
        }


def shortened(text: str) -> str:
    """The reason, cut to 300 characters: texts of rows may have any length."""
    return text if len(text) <= _MAX_DETAIL else f"{text[: _MAX_DETAIL - 2]} …"
