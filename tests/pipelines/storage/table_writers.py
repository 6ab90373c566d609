"""A small table of samples, for processes that write it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from darkroom.pipelines.records import Reject, Sample, Truth
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.store_paths import store_path
from darkroom.pipelines.storage.tables import TableKey, Tables

SAMPLES = ("samples",)
KEY = TableKey(SAMPLES, "demo-0000")


def sample(n: int) -> Sample:
    return Sample(
        sample_id=f"id{n}",
        source="demo",
        source_row=f"row/{n}",
        license="",
        images=(),
        question=f"What is {n}?",
        choices=(),
        answer=str(n),
        truth=Truth(),
        category="",
    )


def refused(n: int) -> Reject:
    return reject(Reason.STAGE_FAILED, "no", stage="samples", row={"n": n}, source="demo", source_row=f"row/{n}")


def write(tables: Tables, rows: Iterable[int], rejects: Iterable[int], *, inputs: str, key: TableKey = KEY) -> None:
    kept = [sample(n) for n in rows]
    tables.write(key, Sample, kept, map(refused, rejects), inputs=inputs, facts={"n_out": len(kept)})


def write_often(url: str, scratch: Path, n: int, times: int = 6) -> None:
    """A table of ``n`` rows with one reject more."""
    tables = Tables(store_path(url), scratch)
    for _ in range(times):
        write(tables, [n] * n, [n] * (n + 1), inputs=str(n))
