"""The stage runner: rows in, a record or a rejection for each, a table out, for SFT, RL and annotation alike.

A stage is a frozen dataclass whose fields are its settings and the policies it calls. ``Shard.materialize`` puts the
ledger before the policies, measures row by row and writes the table. An interrupted stage resumes without paying again;
with the same settings, inputs and code it does nothing.
"""

from __future__ import annotations

import asyncio
import errno
import os
import traceback
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from darkroom import sandbox
from darkroom.pipelines.models.policies import OpenAIPolicy, Policy, PolicyUnavailable, RecordedPolicy
from darkroom.pipelines.models.policies.batch_queue import BatchQueue
from darkroom.pipelines.records import Reject, Sample, Usage, from_row, to_row
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.stage_runs import Outcome, StageProgress, StageReport, code_digest, map_rows, run_stage
from darkroom.pipelines.storage.storage_errors import AnswersPending, StorageError, storage_errors
from darkroom.pipelines.storage.tables import TableKey, TableStale, check_fingerprint
from darkroom.pipelines.storage.workspace import Workspace

O = TypeVar("O", bound="Origin")  # noqa: E741
R = TypeVar("R")
T = TypeVar("T")
SAMPLES = ("samples",)
STAGES = ("drafts", "runs", "verdicts", "trajectories")
RUNNER_CODE = ("darkroom.pipelines.records", "darkroom.pipelines.storage", __name__)
"""What decides the rows of every stage."""
_NO_DATA = (TableStale, StorageError, LedgerUnavailable, SQLAlchemyError)
"""No ledger, no disk or object store, or other tables than before."""
_FATAL = (PolicyUnavailable, AnswersPending, sandbox.SandboxUnavailable, *_NO_DATA)
"""No endpoint, no answer yet, no sandbox."""
_NO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE})
"""The same of an ``OSError``; others are a row's own, like Pillow's for an unreadable image."""


class Origin(typing.Protocol):
    """Origin of a row: a sample, or an image of an annotation pool."""

    @property
    def source(self) -> str:
        """The source's name."""

    @property
    def source_row(self) -> str:
        """The row's name there."""


class Rejection(NamedTuple):
    """A row that a stage rejects after it was measured: the reject keeps ``record``, a dataclass or a plain row."""

    error: RowError
    record: Any
    check: str = ""
    """The failed check, if one failed."""


class Stage(ABC, Generic[O, T, R]):
    """One stage with its settings and policies."""

    @property
    @abstractmethod
    def asset(self) -> str:
        """The table's path: ``pass_rates``, ``crop/drafts``."""

    @property
    @abstractmethod
    def kind(self) -> type[R]:
        """The record of the table's rows."""

    @property
    @abstractmethod
    def code(self) -> Sequence[str]:
        """The modules and packages that decide the rows, besides ``RUNNER_CODE``."""

    @property
    def roles(self) -> Sequence[str]:
        """The fields that hold policies; without the fields that are None."""
        return ()

    @property
    def reads(self) -> Sequence[str]:
        """The tables that it reads; the last one depends on the others."""
        return SAMPLES

    @property
    def family(self) -> str:
        """Family of the rejects, where the stage belongs to one."""
        return ""

    @property
    def n_most(self) -> int | None:
        """Records that are enough; None: every row is measured."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that determine the result besides rows, policies and code (JSON)."""
        return {}

    @property
    def notes(self) -> Mapping[str, Any]:
        """Facts for pages and cards on how the stage measured (JSON)."""
        models = {role: policy.identity.model for role, policy in policies_of(self).items()}
        return {"models": models, "settings": dict(self.settings)}

    @property
    def n_executed(self) -> int:
        """Slow acts of this run besides the policies' turns."""
        return 0

    @abstractmethod
    def rows(self, shard: Shard) -> Sequence[tuple[O, T]]:
        """Rows to measure, each with its origin. Raises ``TableMissing``, ``TableStale``."""

    def order(self, rows: Sequence[tuple[O, T]]) -> Sequence[int]:
        """The places of ``rows`` in the order in which they are measured."""
        return range(len(rows))

    def paid_before(self, row: T) -> Usage:
        """The part of a record's usage that earlier stages paid."""
        return Usage()

    @abstractmethod
    async def measure(self, origin: O, row: T, /) -> R | Rejection:
        """One row. Raises ``RowError`` when it cannot be measured."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One partition of the tables."""

    workspace: Workspace
    partition: str
    progress: Callable[[StageProgress], None] | None = None

    def key(self, asset: str) -> TableKey:
        return TableKey(tuple(asset.split("/")), self.partition)

    @property
    def samples_key(self) -> TableKey:
        return TableKey(SAMPLES, self.partition)

    def samples(self) -> dict[str, Sample]:
        return {sample.sample_id: sample for sample in self.workspace.tables.read(self.samples_key, Sample)}

    def joined(self, asset: str, kind: type[T]) -> list[tuple[Sample, T]]:
        """The rows of one of its tables, each with its sample. Raises ``TableMissing``, ``TableStale``."""
        samples = self.samples()
        rows: list[Any] = self.workspace.tables.read(self.key(asset), kind)
        if any(row.sample_id not in samples for row in rows):
            key = self.key(asset)
            raise TableStale(f"{key} was made from other samples than there are now; run: {key.command}")
        return [(samples[row.sample_id], row) for row in rows]

    def materialize(self, stage: Stage[O, T, R]) -> StageReport:
        """The stage's table. Raises ``PolicyUnavailable`` before any row, ``TableMissing`` for what it reads,
        ``TableReplaced`` where that has changed since the beginning."""
        tables = self.workspace.tables
        # the last one first: the command that makes it makes the others, too
        read = {key: tables.fingerprint(key) for key in map(self.key, reversed(stage.reads))}
        policies = {role: policy.identity.as_json() for role, policy in policies_of(stage).items()}
        code = code_digest(*RUNNER_CODE, *stage.code)
        inputs = digest([stage.asset, list(read.values()), dict(stage.settings), policies, code])

        def perform() -> Outcome[R]:
            outcome = asyncio.run(self._outcome(stage))
            for key, fingerprint in read.items():
                check_fingerprint(tables, key, fingerprint)
            return outcome

        return run_stage(tables, self.key(stage.asset), stage.kind, inputs=inputs, perform=perform)

    async def _outcome(self, stage: Stage[O, T, R]) -> Outcome[R]:
        rows = stage.rows(self)
        async with AsyncExitStack() as stack:
            recorded = await self._recorded(stage, stack)
            reached = replace(typing.cast(Any, stage), **recorded) if recorded else stage
            try:
                measured = await self._measured(reached, rows, list(recorded.values()))
            except AnswersPending as pending:
                places = [await policy.submit() for policy in recorded.values()]
                raise AnswersPending(pending.n_rows, next(filter(None, places), pending.where)) from None
            performed = sum(policy.n_written for policy in recorded.values()) + reached.n_executed
        records: list[R] = []
        rejects: list[Reject] = []
        usage = Usage()
        not_drawn = RowError(Reason.NOT_DRAWN, "enough samples were drafted without this one")
        for place, (origin, row) in enumerate(rows):
            record, cost = measured.get(place, (Rejection(not_drawn, row), Usage()))
            usage += cost
            if isinstance(record, Rejection):
                rejects.append(_reject(stage, record, origin))
            else:
                records.append(record)
        return Outcome(records, rejects, len(rows), usage=usage, performed=performed, notes=stage.notes)

    async def _recorded(self, stage: Stage[O, T, R], stack: AsyncExitStack) -> dict[str, RecordedPolicy]:
        """The stage's policies behind the ledger, reached, and closed at the end. Raises ``PolicyUnavailable``."""
        ledger, folder = self.workspace.ledger, self.workspace.local / "batches"
        recorded: dict[str, RecordedPolicy] = {}
        for role, policy in policies_of(stage).items():
            owner = (stage.asset, self.partition, role)
            queue = BatchQueue(policy, ledger, folder, owner) if isinstance(policy, OpenAIPolicy) else None
            recorded[role] = await stack.enter_async_context(RecordedPolicy(policy, ledger, queue))
        for each in recorded.values():
            await each.check()
        return recorded

    async def _measured(
        self, stage: Stage[O, T, R], rows: Sequence[tuple[O, T]], policies: Sequence[RecordedPolicy]
    ) -> dict[int, tuple[R | Rejection, Usage]]:
        """By place. With ``n_most``: in rounds, each as large as the number of records that are missing, whatever the
        time. Raises ``AnswersPending`` after a round in which rows wait for batches."""
        measured: dict[int, tuple[R | Rejection, Usage]] = {}
        waiting = list(stage.order(rows))
        while waiting:
            n_records = sum(not isinstance(record, Rejection) for record, _ in measured.values())
            n_missing = len(waiting) if stage.n_most is None else max(0, stage.n_most - n_records)
            places, waiting = waiting[:n_missing], waiting[n_missing:]
            if not places:
                break
            results = await map_rows(
                places,
                lambda place: _measured_row(stage, *rows[place]),
                concurrency=max([os.cpu_count() or 1, *(policy.concurrency for policy in policies)]),
                progress=self._progress(policies),
            )
            measured |= {place: result for place, result in zip(places, results, strict=True) if result is not None}
            if n_pending := results.count(None):
                raise AnswersPending(n_pending)
        return measured

    def _progress(self, policies: Sequence[RecordedPolicy]) -> Callable[[int, int], None] | None:
        if (report := self.progress) is None:
            return None
        return lambda n_done, n_rows: report(
            StageProgress(n_done, n_rows, sum(policy.spent.cost_usd for policy in policies))
        )


async def _measured_row(stage: Stage[O, T, R], origin: O, row: T) -> tuple[R | Rejection, Usage] | None:
    """None for a row that waits for a batch."""
    try:
        record = await stage.measure(origin, row)
    except AnswersPending:
        return None
    except Exception as error:  # noqa: BLE001  # classified by row_error
        return Rejection(row_error(error), row), Usage()
    measured = record.record if isinstance(record, Rejection) else record
    if isinstance(measured, dict):  # a plain row
        return record, from_row(Usage, measured.get("usage") or {}) - stage.paid_before(row)
    return record, getattr(measured, "usage", Usage()) - stage.paid_before(row)


def _reject(stage: Stage[O, T, R], rejection: Rejection, origin: O) -> Reject:
    record = rejection.record
    return reject(
        rejection.error.reason,
        rejection.error.evidence,
        stage=stage.asset,
        row=record if isinstance(record, dict) else to_row(record),
        family=stage.family,
        check=rejection.check,
        source=origin.source,
        source_row=origin.source_row,
        sample_id=getattr(origin, "sample_id", ""),
        trajectory_id=getattr(record, "trajectory_id", ""),
    )


def policies_of(stage: Stage[Any, Any, Any]) -> dict[str, Policy]:
    policies = {role: getattr(stage, role) for role in stage.roles}
    return {role: policy for role, policy in policies.items() if policy is not None}


def row_error(error: Exception) -> RowError:
    """One row's failure, whatever a recipe, a check or a script raised. Raises ``error`` itself when the next row would
    fare no better (``_FATAL``, ``_NO_DISK``)."""
    if isinstance(error, _FATAL):
        raise error
    if isinstance(error, OSError) and error.errno in _NO_DISK:
        with storage_errors(str(error.filename or "a disk of this machine")):
            raise error
    if isinstance(error, RowError):
        return error
    return RowError(Reason.STAGE_FAILED, "".join(traceback.format_exception(error)[-3:]).strip()[-800:])
