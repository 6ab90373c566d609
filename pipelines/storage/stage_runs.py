"""A stage's table: reused while its inputs are unchanged, else made again and written atomically; no row is lost.
Stages that measure row by row run through ``pipelines/generation/stage.py``, which ends here."""

import asyncio
import json
import time
from collections import ChainMap, Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from darkroom.pipelines.records import Reject, Usage, from_row, to_row
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.reject_reasons import RETRYABLE
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.tracing import span

R = TypeVar("R")
T = TypeVar("T")
ROOT = Path(__file__).parents[3]
"""The folder that holds the package ``darkroom``."""
_COUNTS = ("n_in", "n_out", "n_rejected", "n_quarantined", "n_not_applicable")
VERSIONS = Path(__file__).with_name("code_versions.json")
Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all)."""


class RowsLost(Exception):
    """A stage broke the conservation rule: rows in = rows out + rejected + quarantined + not applicable."""


class NotFinished(Exception):
    """A stage has work to do, where only finished ones were asked for."""


class RejectKind(NamedTuple):
    """Reason and error of a reject, for counts."""

    reason: str
    check: str
    disposition: str


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """Records and rejects that a stage made of ``n_in`` rows."""

    rows: Collection[R]
    rejects: Collection[Reject]
    n_in: int
    usage: Usage = Usage()
    performed: int = 0
    """Paid or slow acts of this run; the others came from the ledger."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What cards say of how the stage judged (JSON); kept with the table."""
    counts: Mapping[RejectKind, int] | None = None
    """Of the rejects, where reading them only to count them would be slow; None: they are counted."""


@dataclass(frozen=True, slots=True)
class StageReport:
    """Report of a stage for people: counts, reasons, cost, and whether anything had to be done."""

    key: TableKey
    n_in: int
    n_out: int
    n_rejected: int
    n_quarantined: int
    n_not_applicable: int
    reasons: dict[str, int]
    usage: Usage
    reused: bool
    performed: int


@cache
def code_version() -> str:
    """The version of the toolkit, as provenance records it."""
    return version("darkroom-toolkit")


@cache
def code_versions() -> dict[str, int]:
    """The declared versions of the modules and packages that decide rows."""
    versions: dict[str, int] = json.loads(VERSIONS.read_text(encoding="utf-8"))
    return versions


def code_digest(*names: str) -> str:
    """Digest of the versions of ``names``: modules (``darkroom.pipelines.rl.labels``) and packages with all below them.
    Stages name the code that decides their rows: a new version makes their tables again, another edit does not. Raises
    ``LookupError`` for a name without a version."""
    named = {name: {n: v for n, v in code_versions().items() if f"{n}.".startswith(f"{name}.")} for name in names}
    if missing := " ".join(name for name, versions in named.items() if not versions):
        raise LookupError(f"code without a version decides rows; run: python -m scripts.code_versions {missing}")
    return digest(dict(ChainMap(*named.values())))


def file_version(file: Path) -> str:
    """The version of one of our modules, or of the nearest package that has one; the digest of a user's file."""
    if not file.is_relative_to(ROOT / "darkroom"):
        return digest_bytes(file.read_bytes())
    parts = file.relative_to(ROOT).with_suffix("").parts
    names = (".".join(parts[:n]) for n in range(len(parts), 1, -1))
    return code_digest(next(name for name in names if name in code_versions()))


_finished_only: ContextVar[bool] = ContextVar("finished_only", default=False)


@contextmanager
def finished_only() -> Iterator[None]:
    """Within, a stage that would work raises ``NotFinished`` and does nothing."""
    token = _finished_only.set(True)
    try:
        yield
    finally:
        _finished_only.reset(token)


def begin_work(key: TableKey) -> None:
    """Raises ``NotFinished`` within ``finished_only``."""
    if _finished_only.get():
        raise NotFinished(key)


def run_stage(
    tables: Tables, key: TableKey, kind: type[R], *, inputs: str, perform: Callable[[], Outcome[R]]
) -> StageReport:
    """Runs one stage for one partition, unless its table was made from the same ``inputs`` and nothing is retryable.
    Raises ``RowsLost`` before writing when rows do not add up, ``NotFinished`` within ``finished_only``."""
    if tables.inputs(key) == inputs and not tables.facts(key)["n_retryable"]:
        return report(tables, key, reused=True)
    begin_work(key)
    attributes = {"darkroom.asset": "/".join(key.asset), "darkroom.partition": key.partition}
    with span(f"stage {'/'.join(key.asset)}", attributes) as note:
        outcome = perform()
        facts = _facts(outcome)
        note({f"darkroom.{name}": facts[name] for name in _COUNTS} | {"darkroom.n_performed": outcome.performed})
    if outcome.n_in != sum(facts[name] for name in _COUNTS[1:]):
        raise RowsLost(f"{key}: {outcome.n_in} rows in, but {facts['n_out']} out and {len(outcome.rejects)} rejects")
    tables.write(key, kind, outcome.rows, outcome.rejects, inputs=inputs, facts=facts)
    return report(tables, key, reused=False, performed=outcome.performed)


def report(tables: Tables, key: TableKey, *, reused: bool = True, performed: int = 0) -> StageReport:
    facts = tables.facts(key)
    counts = {name: facts[name] for name in (*_COUNTS, "reasons")}
    return StageReport(key, **counts, usage=from_row(Usage, facts["usage"]), reused=reused, performed=performed)


def reason_of(rejected: Reject | RejectKind) -> str:
    """The reason as people read it: a failed check is named."""
    return f"{rejected.reason}: {rejected.check}" if rejected.check else rejected.reason


def _facts(outcome: Outcome[Any]) -> dict[str, Any]:
    counts, reasons, dispositions = outcome.counts, Counter[str](), Counter[str]()
    if counts is None:
        counts = Counter(RejectKind(reject.reason, reject.check, reject.disposition) for reject in outcome.rejects)
    for kind, n in counts.items():
        reasons[reason_of(kind)] += n
        dispositions[kind.disposition] += n
    return {
        "n_in": outcome.n_in,
        "n_out": len(outcome.rows),
        "n_rejected": dispositions["rejected"],
        "n_quarantined": dispositions["quarantined"],
        "n_not_applicable": dispositions["not_applicable"],
        "n_retryable": sum(n for kind, n in counts.items() if kind.reason in RETRYABLE),
        "reasons": dict(sorted(reasons.items())),
        "usage": to_row(outcome.usage),
        **({"notes": dict(outcome.notes)} if outcome.notes else {}),
    }


def store_rows(tables: Tables, key: TableKey, kind: type[R], rows: Sequence[R]) -> StageReport:
    """A table of rows that are there already, written when they differ from those in it."""
    inputs = digest([to_row(row) for row in rows])
    return run_stage(tables, key, kind, inputs=inputs, perform=lambda: Outcome(rows, (), len(rows)))


async def map_rows(
    rows: Sequence[R], perform: Callable[[R], Awaitable[T]], *, concurrency: int, progress: Progress | None = None
) -> list[T]:
    """``perform`` on every row, ``concurrency`` at a time; results in the rows' order. An exception is not a row's
    failure (those are results): no further row begins, those that have begun finish, so that what they paid for is on
    the record, and the first exception is raised."""
    results: dict[int, T] = {}
    errors: list[Exception] = []
    waiting = iter(enumerate(rows))

    async def work() -> None:
        for place, row in waiting:
            if errors:
                return
            try:
                results[place] = await perform(row)
            except Exception as error:  # noqa: BLE001  # raised below, when the others are finished
                errors.append(error)
                return
            if progress is not None:
                progress(len(results), len(rows))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(concurrency, len(rows))):
            tasks.create_task(work())
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(rows))]


class StageProgress(NamedTuple):
    """Progress of a stage. ``usd``: spent in this run; None where nothing has a price."""

    n_done: int
    n_rows: int
    usd: float | None = None


class Pace:
    """Words for one stand after another, from the first row on. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()

    def words(self, stand: StageProgress) -> str:
        seconds = self._seconds()
        share = stand.n_done / stand.n_rows if stand.n_rows else 1.0
        text = f"{stand.n_done:,} of {stand.n_rows:,} rows ({share:.0%}), {stand.n_done / seconds:,.1f} a second"
        if remaining := _left(stand, seconds):
            text += f", about {duration(remaining)} left"
        if stand.usd:
            text += f"; ${stand.usd:,.2f} so far, about ${stand.usd / share:,.2f} in all"
        return text

    def left(self, stand: StageProgress) -> float:
        """Seconds until the last row at the pace so far; 0 where nothing is known or left."""
        return _left(stand, self._seconds())

    def _seconds(self) -> float:
        return max(self._clock() - self._began, 1e-9)


def _left(stand: StageProgress, seconds: float) -> float:
    return seconds / stand.n_done * (stand.n_rows - stand.n_done) if stand.n_done else 0.0


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
