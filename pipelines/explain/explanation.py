"""What became of a sample: its way through every family and partition, and the acts that this took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine import SAMPLES, STAGES
from pipelines.explain.acts import RowAct, acts_of, rl_acts
from pipelines.explain.subjects import Subject, TableFile, find_subject, matching, table_files
from pipelines.rl.facts import STAGES as RL_STAGES
from pipelines.rl.labels import VERIFICATIONS
from pipelines.workspace import Workspace

RL = "rl"
"""The way of a sample through the stages of RL data: one, whatever its families."""
_RL_TABLES = ("rl_candidates", *VERIFICATIONS, *RL_STAGES[1:], "suitability_reviews")
_ORDER = (*SAMPLES, *STAGES, "sft_dataset", *_RL_TABLES)


@dataclass(frozen=True, slots=True)
class Passage:
    """One stage that a row came to: ``outcome`` is kept, rejected or quarantined; a reject has the other three."""

    stage: str
    partition: str
    outcome: str
    reason: str
    check: str
    evidence: str
    row: Mapping[str, Any]
    """The row as the stage left it, or as it was when the stage took it out."""


@dataclass(frozen=True, slots=True)
class Way:
    """One family's: the stages in order, the latest form of the row, the acts. No id before a draft was written."""

    family: str
    trajectory_id: str
    passages: tuple[Passage, ...]
    row: Mapping[str, Any]
    acts: tuple[RowAct, ...]

    @property
    def rejected(self) -> Passage | None:
        """Where the row was taken out, if it was."""
        return next((passage for passage in reversed(self.passages) if passage.outcome != "kept"), None)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about a row. ``intake`` is empty where the samples' table is gone; ``sample`` is None then."""

    subject: Subject
    sample: Mapping[str, Any] | None
    intake: tuple[Passage, ...]
    ways: tuple[Way, ...]


def explain(workspace: Workspace, query: str) -> Explanation:
    """Everything about the row that ``query`` means: a trajectory's own way, or all of a sample's.

    Raises ``RowUnknown``, ``RowAmbiguous``.
    """
    subject = find_subject(workspace.tables, query)
    passages = list(_passages(workspace, subject))
    intake = tuple(passage for _, _, passage in passages if passage.stage in SAMPLES)
    sample = next((passage.row for passage in intake if passage.outcome == "kept"), None)
    by_way: dict[tuple[str, str], list[Passage]] = {}
    for family, trajectory_id, passage in passages:
        if passage.stage not in SAMPLES:
            by_way.setdefault((family, trajectory_id), []).append(passage)
    ways = tuple(_way(workspace, sample, subject, *names, found) for names, found in sorted(by_way.items()))
    return Explanation(subject, sample, intake, ways)


def _passages(workspace: Workspace, subject: Subject) -> Iterator[tuple[str, str, Passage]]:
    """Each with its family and trajectory, in the stages' order."""
    for file in sorted(table_files(workspace.tables), key=_place):
        names = set(pq.read_schema(file.path).names)
        for row in matching(file, _condition(subject, file)) if {"sample_id"} <= names else ():
            trajectory_id = row.get("trajectory_id", "")
            if subject.kind != "trajectory" or file.asset == SAMPLES or trajectory_id == subject.id:
                family = RL if file.asset[0] in _RL_TABLES else row.get("family") or file.asset[0]
                yield family, trajectory_id, _passage(file, row)


def _condition(subject: Subject, file: TableFile) -> Any:
    if subject.kind != "source row":
        return pc.field("sample_id") == subject.sample_id
    if file.asset != SAMPLES:
        return pc.field("sample_id") != pc.field("sample_id")  # no other stage has seen it
    source, _, row = subject.id.partition(":")
    return (pc.field("source") == source) & (pc.field("source_row") == row)


def _place(file: TableFile) -> tuple[int, tuple[str, ...], str, bool]:
    stage = file.asset[-1]
    return (_ORDER.index(stage) if stage in _ORDER else len(_ORDER), file.asset, file.partition, file.holds_rejects)


def _passage(file: TableFile, row: Mapping[str, Any]) -> Passage:
    stage = "/".join(file.asset)
    if not file.holds_rejects:
        return Passage(stage, file.partition, "kept", "", "", "", row)
    inner = json.loads(row["row"])
    return Passage(stage, file.partition, row["disposition"], row["reason"], row["check"], row["evidence"], inner)


def _way(
    workspace: Workspace,
    sample: Mapping[str, Any] | None,
    subject: Subject,
    family: str,
    trajectory_id: str,
    passages: Sequence[Passage],
) -> Way:
    latest = _latest(passages)
    known = sample or {"sample_id": subject.sample_id}
    if family == RL:
        acts = rl_acts(workspace.ledger, known["sample_id"])
    else:
        acts = acts_of(workspace.ledger, latest, known, family=family, trajectory_id=trajectory_id)
    return Way(family, trajectory_id, tuple(passages), latest, acts)


def _latest(passages: Sequence[Passage]) -> dict[str, Any]:
    """What all stages together know of the row: the draft's text and hint, the runs' rounds, the verdicts' checks."""
    known: dict[str, Any] = {}
    for passage in passages:
        known |= {name: value for name, value in passage.row.items() if value or name not in known}
    return known
