"""Questions in a JSON-lines file about images in a folder: what a user has at hand.

    {"image": "street.jpg", "question": "What does the sign say?", "answer": "STOP", "boxes": [[10, 20, 90, 60]]}

Every fault is reported with the file and the line. Shard k of n holds the lines whose number is k modulo n. UTF-8, with
or without a byte order mark; lines end with a line feed, before which a carriage return may stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pipelines.digest import digest
from pipelines.rejects import Reason
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.faults import SourceFault
from pipelines.sources.mapping import Columns, map_row

_LINES_THAT_SHOW_THE_COLUMNS = 100


class JsonLinesSource:
    """Rows of ``questions``; relative image paths are below ``folder``."""

    def __init__(
        self, name: str, questions: Path, folder: Path, columns: Columns, *, n_shards: int = 1, license: str = ""
    ) -> None:
        self.name, self.n_shards = name, n_shards
        self._questions, self._folder, self._columns, self._license = questions, folder, columns, license
        if not questions.is_file():
            raise SourceFault(f"source {name!r}: there is no file {questions}")
        if not folder.is_dir():
            raise SourceFault(f"source {name!r}: there is no folder {folder}")

    @property
    def fingerprint(self) -> str:
        """Changes with the questions, with the mapping, and with any file of the folder."""
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file()]
        seen = [[str(path.relative_to(self._folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        questions = self._questions.stat()
        mapping = self._columns.model_dump()
        return digest(
            [self.name, seen, questions.st_size, questions.st_mtime_ns, mapping, self.n_shards, self._license]
        )

    def check(self) -> None:
        """Raises ``SourceFault`` when a mapped column is in none of the first lines."""
        with self._questions.open("rb") as lines:
            parsed = [_parse(line)[0] for line in islice(lines, _LINES_THAT_SHOW_THE_COLUMNS)]
        rows = [row for row in parsed if isinstance(row, dict)]
        there = sorted({column for row in rows for column in row})
        missing = [column for column in self._columns.used() if column not in there]
        if rows and missing:
            raise SourceFault(
                f"source {self.name!r}: {self._questions} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(map(repr, there))}. Name the right ones in the mapping"
            )

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The shard's lines, in order; empty lines are nothing."""
        self.check()
        with self._questions.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and number % self.n_shards == shard:
                    yield self._row(number, line)

    def _row(self, number: int, line: bytes) -> SourceRow | BadRow:
        where = f"{self._questions.name}:{number}"
        row, problem = _parse(line)
        if not isinstance(row, dict):
            evidence = problem or f"expected an object, found {type(row).__name__}"
            return BadRow(where, Reason.MALFORMED_ROW, evidence, {"line": line.decode("utf-8", "replace")})
        return map_row(row, self._columns, where=where, folder=self._folder, license=self._license)


def _parse(line: bytes) -> tuple[Any, str]:
    """The value of a line, or what is wrong with it."""
    try:
        return json.loads(line.decode("utf-8-sig")), ""
    except UnicodeDecodeError as fault:
        return None, f"not UTF-8: {fault.reason} at byte {fault.start + 1} of the line"
    except (ValueError, RecursionError) as fault:
        return None, f"not JSON: {fault}"
