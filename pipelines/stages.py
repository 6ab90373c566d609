"""How any stage runs: skipped when its inputs are what they were, else performed and written whole, rows conserved."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

from pipelines.digest import digest_files
from pipelines.records import Reject, Usage, from_row, to_row
from pipelines.rejects import RETRYABLE
from pipelines.tables import TableKey, Tables

R = TypeVar("R")
T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all)."""


class RowsLost(Exception):
    """A stage broke the conservation rule: rows in = rows out + rejected + quarantined."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What a stage made of its ``n_in`` rows."""

    rows: Sequence[R]
    rejects: Sequence[Reject]
    n_in: int
    usage: Usage = Usage()
    performed: int = 0
    """Paid or slow acts of this run; the others came from the ledger."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What cards say of how the stage judged (JSON); kept with the table."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a stage went, for people: counts, reasons, cost, and whether anything had to be done."""

    key: TableKey
    n_in: int
    n_out: int
    n_rejected: int
    n_quarantined: int
    reasons: dict[str, int]
    usage: Usage
    reused: bool
    performed: int


def code_version() -> str:
    """The version of the toolkit, as provenance records it."""
    return version("darkroom-toolkit")


@cache
def code_digest() -> str:
    """Digest of the sources that decide what tables hold: a change runs stages again, and the ledger pays for it."""
    root = Path(__file__).parent
    return digest_files([*root.rglob("*.py"), *root.rglob("*.md")], root)


def run_stage(
    tables: Tables, key: TableKey, kind: type[R], *, inputs: str, perform: Callable[[], Outcome[R]]
) -> Report:
    """Runs one stage for one partition, unless its table was made from the same ``inputs`` and nothing is retryable.

    Raises ``RowsLost`` before anything is written when the outcome does not add up.
    """
    if tables.inputs(key) == inputs and not tables.facts(key)["n_retryable"]:
        return report(tables, key, reused=True)
    outcome = perform()
    facts = _facts(outcome)
    if outcome.n_in != facts["n_out"] + facts["n_rejected"] + facts["n_quarantined"]:
        raise RowsLost(f"{key}: {outcome.n_in} rows in, but {facts['n_out']} out and {len(outcome.rejects)} rejects")
    tables.write(key, kind, outcome.rows, outcome.rejects, inputs=inputs, facts=facts)
    return report(tables, key, reused=False, performed=outcome.performed)


def report(tables: Tables, key: TableKey, *, reused: bool = True, performed: int = 0) -> Report:
    """The report of a finished stage."""
    facts = tables.facts(key)
    return Report(
        key=key,
        n_in=facts["n_in"],
        n_out=facts["n_out"],
        n_rejected=facts["n_rejected"],
        n_quarantined=facts["n_quarantined"],
        reasons=facts["reasons"],
        usage=from_row(Usage, facts["usage"]),
        reused=reused,
        performed=performed,
    )


def reason_of(rejected: Reject) -> str:
    """The reason as people read it: a failed check is named."""
    return f"{rejected.reason}: {rejected.check}" if rejected.check else rejected.reason


def _facts(outcome: Outcome[Any]) -> dict[str, Any]:
    kinds = Counter(rejected.disposition for rejected in outcome.rejects)
    return {
        "n_in": outcome.n_in,
        "n_out": len(outcome.rows),
        "n_rejected": kinds["rejected"],
        "n_quarantined": kinds["quarantined"],
        "n_retryable": sum(rejected.reason in RETRYABLE for rejected in outcome.rejects),
        "reasons": dict(sorted(Counter(map(reason_of, outcome.rejects)).items())),
        "usage": to_row(outcome.usage),
        **({"notes": dict(outcome.notes)} if outcome.notes else {}),
    }


async def map_rows(
    rows: Sequence[R], perform: Callable[[R], Awaitable[T]], *, concurrency: int, progress: Progress | None = None
) -> list[T]:
    """``perform`` on every row, ``concurrency`` at a time; results in the rows' order.

    An exception is not a row's failure (those are results): no further row begins, those that have begun are finished,
    so that what they paid for is on the record, and the first exception is raised.
    """
    results: dict[int, T] = {}
    faults: list[Exception] = []
    left = iter(enumerate(rows))

    async def work() -> None:
        for place, row in left:
            if faults:
                return
            try:
                results[place] = await perform(row)
            except Exception as fault:  # noqa: BLE001  # raised below, when the others are finished
                faults.append(fault)
                return
            if progress is not None:
                progress(len(results), len(rows))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(concurrency, len(rows))):
            tasks.create_task(work())
    if faults:
        raise faults[0]
    return [results[place] for place in range(len(rows))]
