"""Explain one row or reject: its history through every family and partition, from the tables and the ledger. A row is
named by an id, the beginning of one, or its place in its source. Also here: the meaning of every reject reason and flaw
with what to do about it, and which rows each family takes. Those texts lie beside this module, outside of what decides
rows: editing them makes no table stale."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
import yaml

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.ledger_calls import LedgerCall, rl_calls, rollout_calls
from darkroom.pipelines.inspection.table_search import TableFile, files_with, table_files
from darkroom.pipelines.records.reject_reasons import Reason, disposition_of
from darkroom.pipelines.rl.facts import STAGES as RL_STAGES
from darkroom.pipelines.rl.labels import VERIFICATIONS
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

RL = "rl"
"""The history of a sample through the stages of RL data: one, whatever its families."""
MIN_PREFIX = 6
"""Shorter beginnings of ids mean too many rows to be worth a search."""
_IDS = ("trajectory_id", "sample_id")
_RL_TABLES = ("rl_candidates", *VERIFICATIONS, *RL_STAGES[1:], "suitability_reviews")
_ORDER = (*SAMPLES, *STAGES, "sft_dataset", *_RL_TABLES)


class RowAmbiguous(UserError):
    """Several rows match: ``candidates``."""

    def __init__(self, query: str, candidates: Sequence[Subject]) -> None:
        super().__init__(f"{query!r} means {len(candidates)} rows; name one of them")
        self.candidates = tuple(candidates)


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """The explained row: a trajectory, a sample with all its trajectories, or a source row that intake rejected."""

    kind: Literal["trajectory", "sample", "source row"]
    id: str
    """``<source>:<source_row>`` of a source row."""
    sample_id: str = ""
    where: str = ""
    """For people: its family, or its place in its source."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One stage that a row came to: ``outcome`` is kept or a disposition; a reject has the other three."""

    stage: str
    partition: str
    outcome: str
    reason: str
    check: str
    evidence: str
    row: Mapping[str, Any]
    """The row as the stage wrote it, or as the stage rejected it."""


@dataclass(frozen=True, slots=True)
class FamilyHistory:
    """One family's stages in order, the latest form of the row, and its calls. No id before a draft was written."""

    family: str
    trajectory_id: str
    passages: tuple[Passage, ...]
    row: Mapping[str, Any]
    calls: tuple[LedgerCall, ...]

    @property
    def rejected(self) -> Passage | None:
        """The stage that rejected the row, if one did."""
        return next((passage for passage in reversed(self.passages) if passage.outcome != "kept"), None)

    @property
    def is_applicable(self) -> bool:
        """True if the family takes such a sample; else no draft was written."""
        return self.rejected is None or self.rejected.reason != Reason.NOT_APPLICABLE


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about a row. ``intake`` is empty where the samples' table is gone; ``sample`` is None then."""

    subject: Subject
    sample: Mapping[str, Any] | None
    intake: tuple[Passage, ...]
    histories: tuple[FamilyHistory, ...]


def explain(workspace: Workspace, query: str) -> Explanation:
    """Explain the row of ``query``: a trajectory, or all of a sample. Raises ``UserError``, ``RowAmbiguous``."""
    files = sorted(table_files(workspace.tables), key=_order)
    subject = _find_subject(files, query, workspace.tables.root)
    intake: list[Passage] = []
    by_trajectory: dict[tuple[str, str], list[Passage]] = {}
    for family, trajectory_id, passage in _passages(files, subject):
        if passage.stage in SAMPLES:
            intake.append(passage)
        else:
            by_trajectory.setdefault((family, trajectory_id), []).append(passage)
    sample = next((passage.row for passage in intake if passage.outcome == "kept"), None)
    known_sample = sample or {"sample_id": subject.sample_id}
    histories = (_history(workspace, known_sample, *names, rows) for names, rows in sorted(by_trajectory.items()))
    return Explanation(subject, sample, tuple(intake), tuple(histories))


def _order(file: TableFile) -> tuple[int, tuple[str, ...], str, bool]:
    stage = file.asset[-1]
    return (_ORDER.index(stage) if stage in _ORDER else len(_ORDER), file.asset, file.partition, file.holds_rejects)


def _find_subject(files: Sequence[TableFile], query: str, root: StorePath) -> Subject:
    """The one row that ``query`` means. Raises ``UserError`` and ``RowAmbiguous``."""
    has_prefix = len(query) >= MIN_PREFIX
    by_id = [pl.col(column).str.starts_with(query) for column in _IDS] if has_prefix else []
    holding = files_with(files, (), pl.any_horizontal(_is_at(query), *by_id))  # all are read only once
    subjects = _distinct(_by_place(holding, query))
    if not subjects and has_prefix:
        subjects = _distinct(subject for column in _IDS for subject in _by_id(holding, column, query))
        subjects = [subject for subject in subjects if subject.id == query] or subjects
    if not subjects:
        if not files:
            raise UserError(f"there are no tables in {root} yet. Run: darkroom demo, or darkroom materialize SOURCE")
        short = "" if has_prefix else f"; the beginning of an id has at least {MIN_PREFIX} characters"
        where = f"in the {len(files)} tables of {root}{short}"
        rows = "a trajectory_id, a sample_id or the beginning of one, or a row of a source"
        raise UserError(f"no row {query!r} {where}. Name {rows} (photo/cat, or demo:photo/cat)")
    if len(subjects) > 1:
        raise RowAmbiguous(query, subjects)
    return subjects[0]


def _distinct(subjects: Iterable[Subject]) -> list[Subject]:
    """Each row once: a sample of two sources is one."""
    return sorted({(subject.kind, subject.id): subject for subject in subjects}.values())


def _by_place(files: Sequence[TableFile], query: str) -> Iterator[Subject]:
    """Samples and intake's rejects by the row of their source, with or without the source's name."""
    is_meant = _is_at(query)
    # annotations name an image's row, no sample
    for file in files_with(files, {"source", "source_row", "sample_id"}, is_meant):
        for match in file.rows(is_meant):
            place = f"{match['source']}:{match['source_row']}"
            if match["sample_id"]:
                yield Subject("sample", match["sample_id"], match["sample_id"], place)
            elif file.asset == SAMPLES:
                yield Subject("source row", place)


def _is_at(query: str) -> pl.Expr:
    source, _, rest = query.partition(":")
    row = pl.col("source_row")
    return (row == query) | ((pl.col("source") == source) & (row == rest))


def _by_id(files: Sequence[TableFile], column: str, prefix: str) -> Iterator[Subject]:
    is_meant = pl.col(column).str.starts_with(prefix)
    for match in (match for file in files_with(files, {column}, is_meant) for match in file.rows(is_meant)):
        if column == "trajectory_id":
            yield Subject("trajectory", match[column], match["sample_id"], match.get("family", ""))
        elif match.get("source_row"):
            yield Subject("sample", match[column], match[column], f"{match['source']}:{match['source_row']}")


def _passages(files: Sequence[TableFile], subject: Subject) -> Iterator[tuple[str, str, Passage]]:
    """Each with its family and trajectory, in the stages' order."""
    condition = pl.col("sample_id") == subject.sample_id
    if subject.kind == "source row":  # a row that intake rejected is in no other stage
        files = [file for file in files if file.asset == SAMPLES]
        source, _, row = subject.id.partition(":")
        condition = (pl.col("source") == source) & (pl.col("source_row") == row)
    for file in files_with(files, {"sample_id"}, condition):
        for match in file.rows(condition):
            trajectory_id = match.get("trajectory_id", "")
            if subject.kind != "trajectory" or file.asset == SAMPLES or trajectory_id == subject.id:
                family = RL if file.asset[0] in _RL_TABLES else match.get("family") or file.asset[0]
                yield family, trajectory_id, _passage(file, match)


def _passage(file: TableFile, row: Mapping[str, Any]) -> Passage:
    kept = Passage("/".join(file.asset), file.partition, "kept", "", "", "", row)
    if not file.holds_rejects:
        return kept
    why = {name: row[name] for name in ("reason", "check", "evidence")}
    return replace(kept, outcome=disposition_of(row["reason"], row["disposition"]), row=json.loads(row["row"]), **why)


def _history(
    workspace: Workspace, sample: Mapping[str, Any], family: str, trajectory_id: str, passages: Sequence[Passage]
) -> FamilyHistory:
    # of all stages together: the draft's text and hint, the runs' rounds, the verdicts' checks
    row: dict[str, Any] = {}
    for passage in passages:
        row |= {name: value for name, value in passage.row.items() if value or name not in row}
    if family == RL:
        calls = rl_calls(workspace.ledger, sample["sample_id"])
    else:
        calls = rollout_calls(workspace.ledger, row, sample, family=family, trajectory_id=trajectory_id)
    return FamilyHistory(family, trajectory_id, tuple(passages), row, calls)


class Meaning(NamedTuple):
    """A reason for which a row is not kept, in words."""

    means: str
    do: str
    """Remedy; "Nothing" where the row is rightly left out."""


def meanings(name: str) -> dict[str, dict[str, Meaning]]:
    """``reject_reasons``: every ``Reason``, by stage; ``flaws``: every ``Flaw``, by what its bundled check looks at."""
    groups = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    return {group: {reason: Meaning(**words) for reason, words in reasons.items()} for group, reasons in groups.items()}
