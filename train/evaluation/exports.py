"""The rollouts of a finished evaluation for other programs: ``rollouts.csv``, one row a rollout (``COLUMNS``).

Made of ``rollouts.parquet`` alone, so that an evaluation that is complete needs no second run.
"""

import csv
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from darkroom.pipelines.storage.atomic_write import whole_file
from darkroom.train.evaluation.settings import ExportFormat

_BATCH = 64
_CELL = 32_767
"""Characters in a cell of a spreadsheet; a program that reads more spreads the rest over other cells."""
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
"""How a cell begins that a spreadsheet computes (OWASP, CSV injection); the last four in East Asian locales."""
COLUMNS = (
    *("id", "rollout", "benchmark", "category", "question", "choices", "gold", "answer", "correct", "score", "detail"),
    *("error", "rounds", "rounds_ok", "code_ran", "images_shown", "calls", "prompt_tokens", "completion_tokens"),
)
"""Of ``rollouts.csv``. ``id``: of the sample. ``rounds_ok``: rounds whose code ended without an error; ``code_ran``:
there is code, and all of it did."""


def export(folder: Path, formats: Collection[ExportFormat]) -> None:
    """Write the files of ``formats`` into an evaluation's folder, each whole or not at all."""
    if ExportFormat.CSV in formats:
        with whole_file(folder / "rollouts.csv") as part:
            _write_csv(part, _rows(folder / "rollouts.parquet"))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH):
            yield from batch.to_pylist()


def _write_csv(path: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    """Quoted, with the mark by which spreadsheets recognise UTF-8."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        writer.writerows([safe_cell(value) for value in _values(row)] for row in rows)


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    observations, usage = [turn["observation"] for turn in row["rounds"]], row["usage"]
    n_ok = sum(observation["status"] == "ok" for observation in observations)
    return (
        *(row[name] for name in ("sample_id", "number", "benchmark", "category", "question")),
        "\n".join(row["choices"]),
        *(row[name] for name in ("gold", "answer", "right", "score", "detail", "fault")),
        *(len(observations), n_ok, bool(observations) and n_ok == len(observations)),
        sum(len(observation["images"]) for observation in observations),
        *(usage[name] for name in ("calls", "prompt_tokens", "completion_tokens")),
    )


def safe_cell(value: Any) -> str:
    """A cell that a spreadsheet shows and does not compute; texts of models are untrusted."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = value[:_CELL].replace("\0", "")
    return f"'{text}"[:_CELL] if text.lstrip(" ").startswith(_FORMULA) else text
