"""How a family's rows were judged, for its card and its pages: the judges, and what necessity came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.checks.necessity import NEEDS_IMAGE, NEEDS_TOOLS
from pipelines.digest import digest
from pipelines.records import Trajectory
from pipelines.tables import TableKey, Tables

_HOW = {NEEDS_IMAGE: "with a blank image", NEEDS_TOOLS: "without tools"}
_BOUNDS = {NEEDS_IMAGE: "max_blind", NEEDS_TOOLS: "max_without_tools"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One way to ask without aid, over all rows that were asked so. ``most``: the share beyond which rows go."""

    check: str
    n_rows: int
    n_right: int
    n_trials: int
    n_ever: int
    """Rows with at least one right answer."""
    n_failed: int
    most: float | None

    @property
    def how(self) -> str:
        """In words."""
        return _HOW[self.check]

    @property
    def share(self) -> float:
        """Of all answers, those that were right."""
        return self.n_right / self.n_trials


@dataclass(frozen=True, slots=True)
class Judging:
    """``judges``: each with its check, votes and calibration (``pipelines/verdicts.py``). ``asked``: who answered
    without aid."""

    judges: Sequence[Mapping[str, Any]]
    measured: Sequence[Measured]
    asked: str


def judging_of(tables: Tables, family: str, partitions: Sequence[str]) -> Judging:
    """Over those partitions that have verdicts; judges that differ between them are all there."""
    keys = _keys(tables, family, partitions)
    notes = [_notes(tables, key) for key in keys]
    judges = {digest(judge): judge for note in notes for judge in note.get("judges", ())}
    limits = [note["necessity"] for note in notes if "necessity" in note]
    rows = [row for key in keys for row in tables.read(key, Trajectory)]
    asked = sorted({limit["model"] for limit in limits})
    return Judging(list(judges.values()), measured(rows, limits[-1] if limits else {}), ", ".join(asked))


def judging_fingerprint(tables: Tables, family: str, partitions: Sequence[str]) -> str:
    """Changes when what ``judging_of`` says may."""
    return digest([[tables.fingerprint(key), _notes(tables, key)] for key in _keys(tables, family, partitions)])


def measured(rows: Sequence[Trajectory], limits: Mapping[str, Any]) -> tuple[Measured, ...]:
    """What necessity came to on ``rows``; nothing where none was asked."""
    found = {name: [check for row in rows for check in row.checks if check.name == name] for name in _HOW}
    return tuple(
        Measured(
            check=name,
            n_rows=len(checks),
            n_right=sum(round((check.score or 0) * check.n_trials) for check in checks),
            n_trials=sum(check.n_trials for check in checks),
            n_ever=sum(bool(check.score) for check in checks),
            n_failed=sum(not check.passed for check in checks),
            most=limits.get(_BOUNDS[name]),
        )
        for name, checks in found.items()
        if checks
    )


def _keys(tables: Tables, family: str, partitions: Sequence[str]) -> list[TableKey]:
    keys = [TableKey((family, "verdicts"), partition) for partition in partitions]
    return [key for key in keys if tables.exists(key)]


def _notes(tables: Tables, key: TableKey) -> Mapping[str, Any]:
    notes: Mapping[str, Any] = tables.facts(key).get("notes", {})
    return notes
