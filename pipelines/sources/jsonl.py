"""Questions in files about images in a folder: JSON lines, JSON documents, and the published files of other kinds.

    {"image": "street.jpg", "question": "What does the sign say?", "answer": "STOP", "boxes": [[10, 20, 90, 60]]}

Errors name the file and the line (in a list: the entry). Shard k of n has the rows whose number is k modulo n; of the
kinds with a file for each image, the files. UTF-8, or UTF-16 and UTF-32 with a byte order mark; gzip or not; lines end
with LF or CRLF. Lines are streamed; a document (a list, an object, pretty-printed objects) is read completely.
"""

import codecs
import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.columns import Columns, missing_columns, nested_names
from darkroom.pipelines.sources.mapping import map_row
from darkroom.pipelines.sources.source_config import Join

Row = tuple[int, Any, str]
"""The number of a row in its file, its value, and its problem; a broken line's value is its text."""

_N_PROBED = 100
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before UTF-16's, which one begins with
_MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class JsonLinesSource:
    """Rows of ``questions``, one file or several; relative image paths are below ``folder`` (or in it, if a ZIP).
    ``read`` yields the rows of one file, ``reading`` is what else determines them; ``by_file``: shards are of files."""

    name: str
    questions: Path | Sequence[Path]
    folder: Path
    columns: Columns
    _: KW_ONLY
    n_shards: int = 1
    license: str = ""
    read: Callable[[Path], Iterator[Row]] | None = None
    by_file: bool = False
    reading: Sequence[Any] = ()

    def __post_init__(self) -> None:
        for path in self._files:
            if not path.is_file():
                raise SourceError(f"source {self.name!r}: there is no file {path}")
        if not self.folder.is_dir() and self.folder.suffix != ".zip":
            raise SourceError(f"source {self.name!r}: there is no folder {self.folder}")

    @property
    def _files(self) -> list[Path]:
        return [self.questions] if isinstance(self.questions, Path) else list(self.questions)

    @cached_property  # a look at every file: once for all shards
    def fingerprint(self) -> str:
        """Changes with the questions, with the mapping, and with any file of the folder."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file()] or [self.folder]
        images = [[str(path.relative_to(self.folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
        questions = [[path.stat().st_size, path.stat().st_mtime_ns] for path in self._files]
        mapping = self.columns.model_dump(mode="json", exclude_defaults=True)
        return digest([self.name, images, questions, mapping, self.n_shards, self.license, *self.reading])

    def check(self) -> None:
        """Raises ``SourceError`` when a mapped column is in none of a file's first rows."""
        for path in self._files[:_N_PROBED]:
            first = [row for _, row, _ in islice((self.read or parsed_lines)(path), _N_PROBED)]
            rows = [row for row in first if isinstance(row, dict)]
            names = sorted({name for row in rows for name in nested_names(row)})
            texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
            if rows and (missing := missing_columns(self.columns, names, texts)):
                problem = f"{path} has no column {missing}. Name the right ones in the mapping"
                raise SourceError(f"source {self.name!r}: {problem}")

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The shard's rows, in order, without empty lines."""
        self.check()
        for path in self._files[shard :: self.n_shards] if self.by_file else self._files:
            for number, row, problem in (self.read or parsed_lines)(path):
                if self.by_file or number % self.n_shards == shard:
                    yield from self._row(f"{path.name}:{number}", row, problem)

    def _row(self, where: str, row: Any, problem: str) -> Iterator[SourceRow | BadRow]:
        if isinstance(row, dict):
            return map_row(row, self.columns, where=where, folder=self.folder, license=self.license)
        evidence = problem or f"expected an object, found {type(row).__name__}"
        return iter([BadRow(where, Reason.MALFORMED_ROW, evidence, {"line": row if problem else json.dumps(row)})])


def parsed_lines(path: Path, rows: str | None = None, join: Join | None = None) -> Iterator[Row]:
    """The rows of JSON lines, or of a document: a list, objects printed over several lines, or the list at ``rows``.
    Raises ``SourceError`` for a document without one, and for a damaged file."""
    if path.name.removesuffix(".gz").endswith(".json") or rows is not None:
        objects: list[Any] | None = _document(path, rows)
    else:
        objects = _printed_objects(path)
    if objects is not None:
        joined = _by_key(join, path) if join else {}
        for number, row in enumerate(objects, 1):
            row = {**joined.get(str(row.get(join.on)), {}), **row} if join and isinstance(row, dict) else row
            yield number, row, ""
        return
    with opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                value, problem = parsed_value(line)
                yield number, line.decode("utf-8", "replace") if problem else value, problem


def parsed_json(path: Path) -> Any:
    """The value of a JSON file. Raises ``SourceError``."""
    with opened(path) as file:
        value, problem = parsed_value(file.read())
    if problem:
        raise SourceError(f"{path}: {problem}")
    return value


def rows_at(value: Any, keys: str, path: Path) -> list[Any]:
    """The rows at ``data``, ``*`` (the values of an object, each with its ``key``) or ``*.qas`` (with the texts and
    numbers of the object that holds the list). Raises ``SourceError`` where there are none."""
    rows = [value]
    for depth, part in enumerate(keys.split(".")):
        if part == "*":
            rows = [inner for outer in rows for inner in _elements(outer)]
            continue
        outers = [outer for outer in rows if isinstance(outer, Mapping) and part in outer]
        rows = [
            {**{name: x for name, x in outer.items() if isinstance(x, str | int)}, **inner}
            if depth and isinstance(inner, Mapping)
            else inner
            for outer in outers
            for inner in _elements(outer[part])
        ]
    if not rows:
        raise SourceError(f"{path}: there are no rows at {keys!r}")
    return rows


def _elements(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [{"key": key, **inner} if isinstance(inner, Mapping) else inner for key, inner in value.items()]
    return value if isinstance(value, list) else []


def _by_key(join: Join, path: Path) -> dict[str, Mapping[str, Any]]:
    rows = _document(path.parent / join.file, join.rows)
    return {str(row[join.on]): row for row in rows if isinstance(row, Mapping) and join.on in row}


def _document(path: Path, keys: str | None) -> list[Any]:
    if keys is not None:
        return rows_at(parsed_json(path), keys, path)
    with opened(path) as file:
        data = file.read()
    rows, problem = parsed_value(data)
    if problem and (objects := _objects(data)):
        return objects
    if not isinstance(rows, list):
        problem = problem or f"found {type(rows).__name__}"
        lists = [name for name, value in rows.items() if isinstance(value, list)] if isinstance(rows, dict) else []
        remedy = f"`rows: {lists[0]}` in the source's file takes those" if lists else "One row per line is .jsonl"
        raise SourceError(f"{path}: expected one list of rows in a .json file; {problem}. {remedy}")
    return rows


def _printed_objects(path: Path) -> list[Any] | None:
    """The objects of a .jsonl file that holds a list of them, or each over several lines; None of any other."""
    with opened(path) as lines:
        bare = (line.removeprefix(codecs.BOM_UTF8).strip() for line in lines)
        first = next(filter(None, bare), b"")
        if first == b"{" or first.startswith(b"["):
            return _objects(first + b"\n" + lines.read()) or None
    return None


def _objects(data: bytes) -> list[Any]:
    """A list of objects, or objects one after another; empty for anything else."""
    decoder, end = json.JSONDecoder(parse_float=_number), 0
    objects: list[Any] = []
    try:
        text = data.decode("utf-8-sig").strip()
        while end < len(text):
            value, end = decoder.raw_decode(text, end)
            if isinstance(value, list) and (objects or text[end:].strip()):
                return []
            objects += value if isinstance(value, list) else [value]
            end += len(text[end : end + 1_000]) - len(text[end : end + 1_000].lstrip())
    except (ValueError, RecursionError):
        return []
    return objects if all(isinstance(value, dict) and value for value in objects) else []


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """A text file as UTF-8, out of gzip; UTF-16 and UTF-32 are read completely. Raises ``SourceError``."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
        with gzip.open(path) if begin.startswith(b"\x1f\x8b") else path.open("rb") as file:
            begin = file.read(4)
            file.seek(0)
            encoding = next((name for mark, name in _MARKS.items() if begin.startswith(mark)), None)
            yield io.BytesIO(file.read().decode(encoding).encode()) if encoding else file
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _number(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits[:40]} is beyond any number that can be compared")
    return number


def parsed_value(text: bytes) -> tuple[Any, str]:
    try:
        return json.loads(text.decode("utf-8-sig"), parse_float=_number), ""
    except UnicodeDecodeError as error:
        return None, f"not UTF-8: {error.reason} at byte {error.start + 1} of the line"
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
