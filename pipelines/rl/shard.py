"""How any RL stage runs on one shard: rows in, one measurement each, rows out or rejects that keep what was measured.

A stage is a frozen dataclass: its fields are its settings and the policies that it asks. ``Shard.materialize`` puts the
ledger before the policies, measures row by row, and writes the table; killed at any moment and run again it pays for
nothing twice, and with the same settings and inputs it does nothing.
"""

from __future__ import annotations

import asyncio
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from pipelines.digest import digest
from pipelines.engine import SAMPLES
from pipelines.isolation import row_fault
from pipelines.ledger import Ledger
from pipelines.policies import Policy, RecordedPolicy
from pipelines.progress import Stand
from pipelines.records import Reject, Sample, Usage, to_row
from pipelines.rejects import RowFault, reject
from pipelines.stages import Outcome, Report, code_digest, map_rows, run_stage
from pipelines.tables import TableKey, TableStale
from pipelines.workspace import Workspace

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Refused(NamedTuple):
    """A row that a stage takes out after it was measured: the measurement is kept in the reject."""

    fault: RowFault
    record: Any
    check: str = ""
    """The check that failed, where it was one."""


class Stage(typing.Protocol[T, R_co]):
    """One RL stage with its settings. ``asset`` names its table; ``kind`` is the record of its rows."""

    @property
    def asset(self) -> str:
        """The table's name."""
        ...

    @property
    def kind(self) -> type[R_co]:
        """The rows' record."""
        ...

    @property
    def roles(self) -> Sequence[str]:
        """The fields that hold policies; one that is None is not asked."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What determines the result besides rows and policies (JSON)."""
        ...

    def upstream(self, shard: Shard) -> Sequence[TableKey]:
        """The tables that it reads besides the samples."""
        ...

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, T]]:
        """What there is to measure."""
        ...

    async def measure(self, sample: Sample, row: T, shard: Shard) -> R_co | Refused:
        """One row. Raises ``RowFault`` when it cannot be measured."""
        ...


@dataclass(frozen=True, slots=True)
class Shard:
    """One partition of the RL tables."""

    workspace: Workspace
    partition: str
    progress: Callable[[Stand], None] | None = None

    def key(self, asset: str) -> TableKey:
        """One of its tables."""
        return TableKey((asset,), self.partition)

    @property
    def samples_key(self) -> TableKey:
        """Its samples."""
        return TableKey(SAMPLES, self.partition)

    def samples(self) -> dict[str, Sample]:
        """Its samples, by id."""
        rows = self.workspace.tables.read(self.samples_key, Sample)
        return {sample.sample_id: sample for sample in rows}

    def joined(self, asset: str, kind: type[T]) -> list[tuple[Sample, T]]:
        """The rows of one of its tables, each with its sample. Raises ``TableMissing``, ``TableStale``."""
        samples = self.samples()
        rows: list[Any] = self.workspace.tables.read(self.key(asset), kind)
        if any(row.sample_id not in samples for row in rows):
            raise TableStale(
                f"{self.key(asset)} was made from other samples than there are now; run: dg launch --job rl_prompts "
                f"--partition {self.partition}"
            )
        return [(samples[row.sample_id], row) for row in rows]

    def materialize(self, stage: Stage[T, R]) -> Report:
        """The stage's table. Raises ``PolicyUnavailable`` before any row, ``TableMissing`` for what it reads."""
        tables = self.workspace.tables
        above = [self.samples_key, *stage.upstream(self)]
        inputs = digest(
            [
                stage.asset,
                [tables.fingerprint(key) if tables.exists(key) else "" for key in above],
                dict(stage.settings),
                {role: policy.identity.as_json() for role, policy in _policies(stage).items()},
                code_digest(),
            ]
        )
        tables.fingerprint(above[-1])  # what is not there is named before anything is paid for
        perform = _Performance(self, stage)
        return run_stage(tables, self.key(stage.asset), stage.kind, inputs=inputs, perform=perform.outcome)


@dataclass(frozen=True, slots=True)
class _Performance(Generic[T, R]):
    """A stage at work on a shard."""

    shard: Shard
    stage: Stage[T, R]

    def outcome(self) -> Outcome[R]:
        return asyncio.run(self._measured())

    async def _measured(self) -> Outcome[R]:
        rows = self.stage.rows(self.shard)
        async with AsyncExitStack() as stack:
            asked = await _recorded(self.stage, self.shard.workspace.ledger, stack)
            stage = replace(typing.cast(Any, self.stage), **asked)
            made = await map_rows(
                rows,
                lambda pair: self._one(stage, *pair),
                concurrency=max([os.cpu_count() or 1, *(policy.concurrency for policy in asked.values())]),
                progress=self._progress(list(asked.values())),
            )
            performed = sum(policy.n_written for policy in asked.values())
        kept = [row for row, _, _ in made if row is not None]
        rejects = [rejected for _, rejected, _ in made if rejected is not None]
        usage = sum((paid for _, _, paid in made), Usage())
        return Outcome(kept, rejects, len(rows), usage, performed, self._notes())

    async def _one(self, stage: Stage[T, R], sample: Sample, row: T) -> tuple[R | None, Reject | None, Usage]:
        try:
            found = await stage.measure(sample, row, self.shard)
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            return None, self._reject(Refused(row_fault(fault), row), sample), Usage()
        if isinstance(found, Refused):
            return None, self._reject(found, sample), usage_of(found.record)
        return found, None, usage_of(found)

    def _reject(self, refused: Refused, sample: Sample) -> Reject:
        return reject(
            refused.fault.reason,
            refused.fault.evidence,
            stage=self.stage.asset,
            row=to_row(refused.record),
            check=refused.check,
            source=sample.source,
            source_row=sample.source_row,
            sample_id=sample.sample_id,
        )

    def _progress(self, asked: Sequence[RecordedPolicy]) -> Callable[[int, int], None] | None:
        told = self.shard.progress
        if told is None:
            return None
        return lambda n_done, n_rows: told(Stand(n_done, n_rows, sum(policy.spent.cost_usd for policy in asked)))

    def _notes(self) -> dict[str, Any]:
        models = {role: policy.identity.model for role, policy in _policies(self.stage).items()}
        return {"models": models, "settings": dict(self.stage.settings)}


def usage_of(record: Any) -> Usage:
    """What a measurement cost."""
    return getattr(record, "usage", Usage())


def _policies(stage: Stage[T, R]) -> dict[str, Policy]:
    found = {role: getattr(stage, role) for role in stage.roles}
    return {role: policy for role, policy in found.items() if policy is not None}


async def _recorded(stage: Stage[T, R], ledger: Ledger, stack: AsyncExitStack) -> dict[str, RecordedPolicy]:
    """The stage's policies with their memory, reached, and closed at the end. Raises ``PolicyUnavailable``."""
    recorded = {
        role: await stack.enter_async_context(RecordedPolicy(policy, ledger))
        for role, policy in _policies(stage).items()
    }
    for policy in recorded.values():
        await policy.check()
    return recorded
