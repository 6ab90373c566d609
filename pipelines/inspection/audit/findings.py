"""What an audit finds: findings by kind, what was compared, and what could not be."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

MAX_FINDINGS = 10_000
"""Kept with their rows; further ones are counted only, so that an audit of a bad release fits into memory."""
_MAX_DETAIL = 300


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is not as the dataset says. ``round`` counts from 1; 0 where it is no round's."""

    kind: str
    """``replay: pixels``, ``check: upright``, ``card``, ``votes``: the table's first column."""
    dataset: str
    row: str
    """The row's id, or its place in a file; empty for a finding of the dataset as a whole."""
    reason: str
    round: int = 0


@dataclass(slots=True)
class AuditReport:
    """An audit's result. The counts say how much of the dataset the findings were looked for in."""

    n_rows: int = 0
    n_rounds: int = 0
    n_images: int = 0
    """Images of observations that were compared."""
    n_executed: int = 0
    """Rounds whose observation was compared."""
    checked: Counter[str] = field(default_factory=Counter)
    """Rows by the check or count that was done again."""
    not_measured: Counter[str] = field(default_factory=Counter)
    """Rows by what could not be done, and why."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Findings by kind, all of them."""
    findings: list[AuditFinding] = field(default_factory=list)
    """The first ``MAX_FINDINGS``."""

    def add(self, findings: Iterable[AuditFinding]) -> None:
        """Counts findings, and keeps them while there is room."""
        for finding in findings:
            self.kinds[finding.kind] += 1
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(finding)

    def take(self, row: Self) -> None:
        """Adds the audit of one row."""
        self.n_rows += row.n_rows
        self.n_rounds += row.n_rounds
        self.n_executed += row.n_executed
        self.n_images += row.n_images
        self.checked.update(row.checked)
        self.not_measured.update(row.not_measured)
        self.kinds.update(row.kinds)
        self.findings += row.findings[: MAX_FINDINGS - len(self.findings)]

    @property
    def n_findings(self) -> int:
        """How many findings there are, those that are only counted among them."""
        return self.kinds.total()

    def as_json(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_rounds": self.n_rounds,
            "n_executed": self.n_executed,
            "n_images": self.n_images,
            "n_findings": self.n_findings,
            "kinds": dict(sorted(self.kinds.items())),
            "checked": dict(sorted(self.checked.items())),
            "not_measured": dict(sorted(self.not_measured.items())),
            "findings": [
                {"kind": finding.kind, "dataset": finding.dataset, "row": finding.row, "round": finding.round}
                | {"reason": finding.reason}
                for finding in self.findings
            ],
        }


def shortened(text: str) -> str:
    """A reason of at most 300 characters: what rows hold may be of any length."""
    return text if len(text) <= _MAX_DETAIL else f"{text[: _MAX_DETAIL - 2]} …"
