"""Verdicts as a file, and what a person is told of them.

The report is parquet, one line per row, with the digest of all that was looked at in its metadata; a copy may be JSON
lines.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from train.conformance.verdicts import REMEDIES, Misfit, Verdict

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("trajectory_id", pa.string()),
        ("family", pa.string()),
        ("n_tokens", pa.int32()),
        ("n_trained", pa.int32()),
        ("n_images", pa.int32()),
        ("n_image_tokens", pa.int32()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("found", pa.string()),
        ("remedy", pa.string()),
    ]
)
_KEY = b"darkroom.conformance"
NAMED_ROWS = 5


@dataclass(frozen=True, slots=True)
class Conformance:
    """What the gate found; sums are over all rows."""

    report: Path
    n_rows: int
    n_refused: int
    n_tokens: int
    n_trained: int
    n_image_tokens: int
    longest: int
    reasons: dict[str, int]
    first_refused: tuple[dict[str, Any], ...]

    def conforming(self) -> list[int]:
        """The places of the rows that may be trained on, in order."""
        table = pq.read_table(self.report, columns=["row", "verdict"])
        kept: list[int] = table.filter(pc.equal(table["verdict"], "conforms"))["row"].to_pylist()
        return kept


class Writer:
    """Writes a report while it grows; the file appears whole."""

    def __init__(self, path: Path, key: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._part = path, path.with_name(f".{path.name}.{uuid4().hex}")
        self._writer = pq.ParquetWriter(self._part, SCHEMA.with_metadata({_KEY: key.encode()}))

    def write(self, verdicts: Iterable[Verdict]) -> None:
        """Appends."""
        self._writer.write_table(pa.Table.from_pylist([verdict.record for verdict in verdicts], schema=SCHEMA))

    def publish(self) -> None:
        """Puts the file in its place."""
        self._writer.close()
        os.replace(self._part, self._path)

    def discard(self) -> None:
        """Takes back what was not published."""
        self._writer.close()
        self._part.unlink(missing_ok=True)


def kept(path: Path, key: str) -> Conformance | None:
    """The report at ``path`` if it is on ``key``."""
    if not path.is_file() or (pq.read_schema(path).metadata or {}).get(_KEY) != key.encode():
        return None
    table = pq.read_table(path)
    wrong = table.filter(pc.equal(table["verdict"], "refused"))
    total = {name: pc.sum(table[name]).as_py() or 0 for name in ("n_tokens", "n_trained", "n_image_tokens")}
    return Conformance(
        report=path,
        n_rows=table.num_rows,
        n_refused=wrong.num_rows,
        longest=pc.max(table["n_tokens"]).as_py() or 0,
        reasons=dict(Counter(wrong["reason"].to_pylist()).most_common()),
        first_refused=tuple(wrong.slice(0, NAMED_ROWS).to_pylist()),
        **total,
    )


def copy_report(found: Conformance, to: Path) -> None:
    """The report as JSON lines, or as parquet where ``to`` is called so."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.suffix == ".parquet":
        to.write_bytes(found.report.read_bytes())
    else:
        lines = (json.dumps(record, ensure_ascii=False) for record in pq.read_table(found.report).to_pylist())
        to.write_text("".join(f"{line}\n" for line in lines))


def summary(found: Conformance) -> str:
    """One line: how many rows, of how many tokens."""
    share = found.n_trained / found.n_tokens if found.n_tokens else 0.0
    said = "all conform" if not found.n_refused else f"{found.n_refused:,} do not conform"
    return (
        f"{found.n_rows:,} rows, {said}; {found.n_tokens:,} tokens, of which {share:.0%} are trained and "
        f"{found.n_image_tokens:,} are of images; the longest row has {found.longest:,}"
    )


def refusal(found: Conformance) -> str:
    """Why nothing is trained: the reasons with their remedies, the first rows, where the report lies."""
    reasons = (f"  {n:,} x {name}: {REMEDIES[Misfit(name)]}" for name, n in found.reasons.items())
    rows = (
        f"  row {row['trajectory_id']} ({row['family']}, {row['reason']}): {row['found']}"
        for row in found.first_refused
    )
    return "\n".join(
        [
            f"{found.n_refused:,} of {found.n_rows:,} rows cannot be trained on",
            *reasons,
            "the first of them:",
            *rows,
            f"every row with its verdict: {found.report}",
        ]
    )
