"""Questions in JSON-lines files, or in JSON files of one list, about images in a folder.

    {"image": "street.jpg", "question": "What does the sign say?", "answer": "STOP", "boxes": [[10, 20, 90, 60]]}

Errors name the file and the line (in a list: the entry). Shard k of n has the rows whose number is k modulo n. UTF-8,
with or without a byte order mark; lines end with LF or CRLF. Lines are streamed; a list (``.json``) is read completely.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.columns import Columns, missing_columns, nested_names
from darkroom.pipelines.sources.mapping import map_row

_N_PROBED_ROWS = 100


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
                raise SourceError(f"source {name!r}: there is no file {path}")
        if not folder.is_dir() and folder.suffix != ".zip":
            raise SourceError(f"source {name!r}: there is no folder {folder}")

    @cached_property  # a look at every file: once for all shards
    def fingerprint(self) -> str:
        """Changes with the questions, with the mapping, and with any file of the folder."""
        files = [path for path in sorted(self._folder.rglob("*")) if path.is_file()] or [self._folder]
        images = [[str(path.relative_to(self._folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        questions = [[path.stat().st_size, path.stat().st_mtime_ns] for path in self._questions]
        mapping = self._columns.model_dump(mode="json", exclude_defaults=True)
        return digest([self.name, images, questions, mapping, self.n_shards, self._license])

    def check(self) -> None:
        """Raises ``SourceError`` when a mapped column is in none of a file's first rows."""
        for path in self._questions:
            first = [row for _, row, _ in islice(parsed_lines(path), _N_PROBED_ROWS)]
            rows = [row for row in first if isinstance(row, dict)]
            names = sorted({name for row in rows for name in nested_names(row)})
            texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
            if rows and (missing := missing_columns(self._columns, names, texts)):
                raise SourceError(
                    f"source {self.name!r}: {path} has no column {missing}. Name the right ones in the mapping"
                )

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The shard's rows, in order, without empty lines."""
        self.check()
        for path in self._questions:
            for number, row, problem in parsed_lines(path):
                if number % self.n_shards == shard:
                    yield from self._row(f"{path.name}:{number}", row, problem)

    def _row(self, where: str, row: Any, problem: str) -> Iterator[SourceRow | BadRow]:
        if problem:
            return iter([BadRow(where, Reason.MALFORMED_ROW, problem, {"line": row})])
        if not isinstance(row, dict):
            evidence = f"expected an object, found {type(row).__name__}"
            return iter([BadRow(where, Reason.MALFORMED_ROW, evidence, {"line": json.dumps(row)})])
        return map_row(row, self._columns, where=where, folder=self._folder, license=self._license)


def parsed_lines(path: Path) -> Iterator[tuple[int, Any, str]]:
    """Number, value and problem of each row; a broken line's value is its text."""
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
        problem = problem or f"found {type(rows).__name__}"
        raise SourceError(f"{path}: expected one list of rows in a .json file; {problem}. One row per line is .jsonl")
    return rows


def _parse(text: bytes) -> tuple[Any, str]:
    """The value of a text, or its problem."""
    try:
        return json.loads(text.decode("utf-8-sig")), ""
    except UnicodeDecodeError as error:
        return None, f"not UTF-8: {error.reason} at byte {error.start + 1} of the line"
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
