"""The verdicts on rows, why a row does not conform and what to do, and the report that stores them.

The report is parquet, one line per row, with the digest of its inputs in the metadata; a copy may be JSON lines:

{"row": 17, "trajectory_id": "4be0…", "family": "crop", "n_tokens": 812, "n_trained": 96, "n_images": 2,
 "n_image_tokens": 640, "verdict": "refused", "reason": "truncated", "found": "it has 812 tokens, …", "remedy": "…"}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from darkroom.pipelines.records.reject_reasons import Refused
from darkroom.pipelines.storage.atomic_write import whole_file

if TYPE_CHECKING:
    from darkroom.pipelines.inspection.audit import AuditReport


class Misfit(StrEnum):
    """Why a row cannot be trained on."""

    UNRENDERABLE = "unrenderable"
    IMAGES_DIFFER = "images_differ"
    IMAGE_DAMAGED = "image_damaged"
    IMAGE_TOKENS_DIFFER = "image_tokens_differ"
    TRUNCATED = "truncated"
    OBSERVATION_TRAINED = "observation_trained"
    OWN_WORDS_UNTRAINED = "own_words_untrained"
    NOTHING_TRAINED = "nothing_trained"


REMEDIES: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("remedies.yaml").read_text())
"""The remedies by reason."""


class RowMisfit(Refused[Misfit]):
    """A row that cannot be trained on."""


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """On one row as it is read. ``row`` is its place among all rows; ``reason`` is None when it conforms."""

    row: int
    trajectory_id: str
    family: str
    n_tokens: int = 0
    n_trained: int = 0
    """Tokens in the loss."""
    n_images: int = 0
    n_image_tokens: int = 0
    reason: Misfit | None = None
    found: str = ""

    def refused(self, misfit: RowMisfit) -> RowVerdict:
        return replace(self, reason=misfit.reason, found=misfit.evidence)

    @property
    def remedy(self) -> str:
        return REMEDIES[self.reason] if self.reason else ""

    def __str__(self) -> str:
        if self.reason is None:
            return f"row {self.trajectory_id} conforms"
        return f"row {self.trajectory_id} ({self.reason}): {self.found}; {self.remedy}"

    @property
    def record(self) -> dict[str, Any]:
        remedy = {"found": self.found or None, "remedy": self.remedy or None}
        return {**asdict(self), "verdict": "refused" if self.reason else "conforms", **remedy}


SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        *((name, pa.string()) for name in ("trajectory_id", "family")),
        *((name, pa.int32()) for name in ("n_tokens", "n_trained", "n_images", "n_image_tokens")),
        *((name, pa.string()) for name in ("verdict", "reason", "found", "remedy")),
    ]
)
_KEY = b"darkroom.conformance"
NAMED_ROWS = 5


@dataclass(frozen=True, slots=True)
class Conformance:
    """The result of the gate; sums are over all rows."""

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
        table = pq.read_table(self.report, columns=["row"], filters=[("verdict", "=", "conforms")])
        return cast(list[int], table["row"].to_pylist())


@contextmanager
def report_writer(path: Path, key: str) -> Iterator[Callable[[Iterable[RowVerdict]], None]]:
    """Append verdicts to a report that appears at ``path`` as a whole, or not at all when the block raises."""
    with whole_file(path) as part, pq.ParquetWriter(part, SCHEMA.with_metadata({_KEY: key.encode()})) as writer:
        yield lambda verdicts: writer.write_table(
            pa.Table.from_pylist([verdict.record for verdict in verdicts], schema=SCHEMA)
        )


def read_report(path: Path, key: str) -> Conformance | None:
    if not path.is_file() or (pq.read_schema(path).metadata or {}).get(_KEY) != key.encode():
        return None
    table = pq.read_table(path)
    wrong = table.filter(pc.equal(table["verdict"], "refused"))
    return Conformance(
        report=path,
        n_rows=table.num_rows,
        n_refused=wrong.num_rows,
        longest=pc.max(table["n_tokens"]).as_py() or 0,
        reasons=dict(Counter(wrong["reason"].to_pylist()).most_common()),
        first_refused=tuple(wrong.slice(0, NAMED_ROWS).to_pylist()),
        **{name: pc.sum(table[name]).as_py() or 0 for name in ("n_tokens", "n_trained", "n_image_tokens")},
    )


def copy_report(conformance: Conformance, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.suffix == ".parquet":
        to.write_bytes(conformance.report.read_bytes())
    else:
        lines = (json.dumps(record, ensure_ascii=False) for record in pq.read_table(conformance.report).to_pylist())
        to.write_text("".join(f"{line}\n" for line in lines))


def encoding_report(conformance: Conformance) -> AuditReport:
    """The part ``encoding`` of an audit: a finding for each row that cannot be trained on."""
    from darkroom.pipelines.inspection.audit import AuditFinding, AuditReport  # with all recipes and the sandbox
    from darkroom.pipelines.inspection.audit.findings import shortened

    columns = ["trajectory_id", "family", "reason", "found"]
    table = pq.read_table(conformance.report, columns=columns, filters=[("verdict", "=", "refused")])
    remedies = [f"{n:,} x {name}: {REMEDIES[name]}" for name, n in conformance.reasons.items()]
    n_rows, notes = conformance.n_rows, [summary(conformance), *remedies]
    report = AuditReport(n_rows=n_rows, checked=Counter(encoding=n_rows), notes=notes)
    report.add(
        AuditFinding(f"encoding: {row['reason']}", row["family"], row["trajectory_id"], shortened(row["found"]))
        for row in table.to_pylist()
    )
    return report


def summary(conformance: Conformance) -> str:
    """One line: how many rows, of how many tokens."""
    share = conformance.n_trained / conformance.n_tokens if conformance.n_tokens else 0.0
    verdict = "all conform" if not conformance.n_refused else f"{conformance.n_refused:,} do not conform"
    return (
        f"{conformance.n_rows:,} rows, {verdict}; {conformance.n_tokens:,} tokens, of which {share:.0%} are trained "
        f"and {conformance.n_image_tokens:,} are of images; the longest row has {conformance.longest:,}"
    )


def explanation(conformance: Conformance) -> str:
    lines = [f"{conformance.n_refused:,} of {conformance.n_rows:,} rows cannot be trained on"]
    lines += [f"  {n:,} x {name}: {REMEDIES[name]}" for name, n in conformance.reasons.items()]
    lines.append("the first of them:")
    for row in conformance.first_refused:
        lines.append(f"  row {row['trajectory_id']} ({row['family']}, {row['reason']}): {row['found']}")
    return "\n".join([*lines, f"every row with its verdict: {conformance.report}"])
