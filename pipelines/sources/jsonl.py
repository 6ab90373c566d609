"""Questions in JSON-lines files, or in JSON files of one list, about images in a folder: what a user has at hand.

    {"image": "street.jpg", "question": "What does the sign say?", "answer": "STOP", "boxes": [[10, 20, 90, 60]]}

Every fault is reported with the file and the line (in a list: the entry). Shard k of n holds those whose number is k
modulo n. UTF-8, with or without a byte order mark; lines end with a line feed, before which a carriage return may
stand. Lines are streamed; a list (``.json``) is read whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pipelines.digest import digest
from pipelines.rejects import Reason
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.columns import Columns, missing_columns, nested_names
from pipelines.sources.faults import SourceFault
from pipelines.sources.mapping import map_row

_ROWS_THAT_SHOW_THE_COLUMNS = 100


class JsonLinesSource:
    """Rows of ``questions``, one file or several; relative image paths are below ``folder`` (or in it, if a ZIP)."""

    def __init__(
        self,
        name: str,
        questions: Path | Sequence[Path],
        folder: Path,
        columns: Columns,
        *,
        n_shards: int = 1,
        license: str = "",
    ) -> None:
        self.name, self.n_shards = name, n_shards
        self._questions = [questions] if isinstance(questions, Path) else list(questions)
        self._folder, self._columns, self._license = folder, columns, license
        for path in self._questions:
            if not path.is_file():
                raise SourceFault(f"source {name!r}: there is no file {path}")
        if not folder.is_dir() and folder.suffix != ".zip":
            raise SourceFault(f"source {name!r}: there is no folder {folder}")

    @property
    def fingerprint(self) -> str:
        """Changes with the questions, with the mapping, and with any file of the folder."""
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file()] or [self._folder]
        seen = [[str(path.relative_to(self._folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        questions = [[path.stat().st_size, path.stat().st_mtime_ns] for path in self._questions]
        mapping = self._columns.model_dump(mode="json", exclude_defaults=True)
        return digest([self.name, seen, questions, mapping, self.n_shards, self._license])

    def check(self) -> None:
        """Raises ``SourceFault`` when a mapped column is in none of a file's first rows."""
        for path in self._questions:
            first = [row for _, row, _ in islice(_rows(path), _ROWS_THAT_SHOW_THE_COLUMNS)]
            rows = [row for row in first if isinstance(row, dict)]
            names = sorted({name for row in rows for name in nested_names(row)})
            texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
            if rows and (missing := missing_columns(self._columns, names, texts)):
                raise SourceFault(
                    f"source {self.name!r}: {path} has no column {missing}. Name the right ones in the mapping"
                )

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The shard's rows, in order; empty lines are nothing."""
        self.check()
        for path in self._questions:
            for number, row, problem in _rows(path):
                if number % self.n_shards == shard:
                    yield self._row(f"{path.name}:{number}", row, problem)

    def _row(self, where: str, row: Any, problem: str) -> SourceRow | BadRow:
        if problem:
            return BadRow(where, Reason.MALFORMED_ROW, problem, {"line": row})
        if not isinstance(row, dict):
            evidence = f"expected an object, found {type(row).__name__}"
            return BadRow(where, Reason.MALFORMED_ROW, evidence, {"line": json.dumps(row)})
        return map_row(row, self._columns, where=where, folder=self._folder, license=self._license)


def _rows(path: Path) -> Iterator[tuple[int, Any, str]]:
    """Number, value and what is wrong with it; a broken line's value is its text."""
    if path.suffix == ".json":
        yield from ((number, row, "") for number, row in enumerate(_list(path), 1))
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                row, problem = _parse(line)
                yield number, line.decode("utf-8", "replace") if problem else row, problem


def _list(path: Path) -> list[Any]:
    rows, problem = _parse(path.read_bytes())
    if not isinstance(rows, list):
        found = problem or f"found {type(rows).__name__}"
        raise SourceFault(f"{path}: a .json file holds one list of rows; {found}. One row per line is a .jsonl file")
    return rows


def _parse(text: bytes) -> tuple[Any, str]:
    """The value of a text, or what is wrong with it."""
    try:
        return json.loads(text.decode("utf-8-sig")), ""
    except UnicodeDecodeError as fault:
        return None, f"not UTF-8: {fault.reason} at byte {fault.start + 1} of the line"
    except (ValueError, RecursionError) as fault:
        return None, f"not JSON: {fault}"
