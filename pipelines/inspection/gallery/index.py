"""The index of a gallery: what is filtered and searched of every row, and where the row lies, in one SQLite file
without images. It is made again when a file of the rows has changed."""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from darkroom.pipelines.inspection.gallery.entries import RejectedRows, link_of, outcome, question_of_reject
from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files
from darkroom.pipelines.records import Reject, to_row
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.stage_runs import Progress, reason_of
from darkroom.pipelines.storage.store_paths import StorePath

_Row = tuple[tuple[Any, ...], Sequence[Mapping[str, Any]]]
"""An entry's values by column, and its checks."""
PAGE_ROWS = 100
FILTERS = ("kind", "family", "category", "reason")
_SHOWN = ("n", "link", *FILTERS, "question")
_VERSION = 2
_TABLES = """
CREATE TABLE entries (n INTEGER PRIMARY KEY, link TEXT, kind TEXT, family TEXT, category TEXT, reason TEXT,
    sample TEXT, question TEXT, texts TEXT, file TEXT, place INTEGER, reject BLOB);
CREATE TABLE checks (outcome TEXT, n INTEGER);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
"""
_INDEXES = """
CREATE INDEX by_link ON entries (link);
CREATE INDEX by_sample ON entries (sample);
CREATE INDEX by_outcome ON checks (outcome, n);
"""


class EntryPlace(NamedTuple):
    """Position of an entry's row: in a dataset's file, or, of a reject with its sample, in the index itself."""

    sample: str
    family: str
    file: str
    place: int
    reject: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A hundred entries of those that the filters leave."""

    number: int
    n_pages: int
    n_entries: int
    entries: tuple[Mapping[str, Any], ...]


class GalleryIndex:
    """An index that was made; each call opens it, so that threads may share this."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def facets(self) -> dict[str, dict[str, int]]:
        with self._open() as database:
            columns = {name: (name, "entries") for name in FILTERS} | {"check": ("outcome", "checks")}
            query = "SELECT {}, count(*) FROM {} GROUP BY 1 ORDER BY 1"
            counts = {name: dict(database.execute(query.format(*of)).fetchall()) for name, of in columns.items()}
        return {name: {value: n for value, n in values.items() if value} for name, values in counts.items()}

    @property
    def n_entries(self) -> int:
        with self._open() as database:
            (n,) = database.execute("SELECT count(*) FROM entries").fetchone()
        return int(n)

    def page(self, filters: Mapping[str, str], number: int, *, row: str = "") -> EntryPage:
        """Page ``number`` from 0; with ``row``, the link of an entry, the page on which that is."""
        where, values = _condition(filters)
        with self._open() as database:
            numbers = [n for (n,) in database.execute(f"SELECT n FROM entries WHERE {where} ORDER BY n", values)]
            if row:
                own = {n for (n,) in database.execute("SELECT n FROM entries WHERE link = ?", [row])}
                number = next((at for at, n in enumerate(numbers) if n in own), 0) // PAGE_ROWS
            n_pages = max(1, -(-len(numbers) // PAGE_ROWS))
            number = min(max(number, 0), n_pages - 1)
            chosen = numbers[number * PAGE_ROWS : (number + 1) * PAGE_ROWS]
            marks = ",".join("?" * len(chosen))
            query = f"SELECT {', '.join(_SHOWN)} FROM entries WHERE n IN ({marks}) ORDER BY n"
            entries = tuple(dict(zip(_SHOWN, each, strict=True)) for each in database.execute(query, chosen))
        return EntryPage(number, n_pages, len(numbers), entries)

    def lookup(self, n: int) -> EntryPlace | None:
        """Position of entry ``n``; None if there is none."""
        return self._lookup("n = ?", n)

    def of_sample(self, sample: str, family: str) -> EntryPlace | None:
        """The first entry of a sample in a family; None where there is none."""
        return self._lookup("sample = ? AND family = ? AND sample != ''", sample, family)

    def _lookup(self, where: str, *values: Any) -> EntryPlace | None:
        query = f"SELECT sample, family, file, place, reject FROM entries WHERE {where} ORDER BY n LIMIT 1"
        with self._open() as database:
            row = database.execute(query, values).fetchone()
        if row is None:
            return None
        sample, family, file, place, packed = row
        return EntryPlace(sample, family, file, place, json.loads(zlib.decompress(packed)) if packed else None)

    def _open(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True))


def open_index(
    path: Path, folders: Sequence[StorePath], rejected: RejectedRows | None, *, progress: Progress | None = None
) -> GalleryIndex:
    """The index of the datasets in ``folders`` and the rejects; made unless that at ``path`` is of these rows."""
    files = [file for folder in folders for file in dataset_files(folder)]
    state = [[str(file), file.stat().st_size, file.stat().st_mtime] for file in files]
    key = digest([_VERSION, state, rejected.state if rejected else None])
    if _key_of(path) != key:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as database:
            _fill(database, files, rejected, progress)
            database.execute("INSERT INTO facts VALUES ('key', ?)", [key])
            database.commit()
        part.replace(path)
    return GalleryIndex(path)


def _key_of(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            (key,) = database.execute("SELECT value FROM facts WHERE name = 'key'").fetchone()
    except (sqlite3.Error, TypeError):  # not there, of another version, or cut off
        return ""
    return str(key)


def _fill(
    database: sqlite3.Connection, files: Sequence[StorePath], rejected: RejectedRows | None, progress: Progress | None
) -> None:
    database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_TABLES}")
    n_rejects = len(rejected.rows) if rejected else 0
    for n, (values, checks) in enumerate(chain(_accepted(files), _rejected(rejected) if rejected else ())):
        database.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (n, *values))
        outcomes = {f"{check['name']}: {outcome(check)}" for check in checks}
        database.executemany("INSERT INTO checks VALUES (?, ?)", [(outcome, n) for outcome in outcomes])
        if progress is not None:
            progress(n + 1, max(n + 1, n_rejects))
    database.executescript(_INDEXES)


def _accepted(files: Sequence[StorePath]) -> Iterator[_Row]:
    for file in files:
        for place, row in enumerate(read_files([file], without=("images", "videos"))):
            names = (link_of(row, row), "accepted", row["family"], row["category"] or "none", "", row["sample_id"])
            values = (*names, row["question"], search_texts(row, row), str(file), place, None)
            yield values, row.get("checks") or ()


def _rejected(rejected: RejectedRows) -> Iterator[_Row]:
    for reject, sample in rejected.rows:
        row = json.loads(reject.row)
        question = question_of_reject(reject, sample, row)
        texts = search_texts(row, question, reject, raw="" if sample else reject.row)
        names = (link_of(row, question), reject.disposition, question["family"], question.get("category") or "none")
        fields = {"reject": to_row(reject), "sample": None if sample is None else to_row(sample)}
        packed = zlib.compress(json.dumps(fields, default=str).encode(), 1)
        facts = (reason_of(reject), reject.sample_id, question.get("question"), texts, "", 0, packed)
        yield (*names, *facts), row.get("checks") or ()


def search_texts(
    row: Mapping[str, Any], question: Mapping[str, Any], reject: Reject | None = None, raw: str = ""
) -> str:
    """Every text of an entry that a search looks at, in lower case."""
    texts = [row.get("trajectory_id"), question.get("sample_id"), question.get("source_row"), question.get("question")]
    texts += [*(question.get("choices") or ()), row.get("text"), row.get("final_thought"), row.get("answer")]
    for turn in row.get("rounds") or ():
        observation = turn["observation"]
        texts += [turn["thought"], turn["code"], observation["text"], observation["error"]]
    for check in row.get("checks") or ():
        texts += [check["name"], check["reason"], check["detail"]]
    if reject is not None:
        texts += [reason_of(reject), reject.evidence, reject.stage, raw]
    return "\n".join(str(text) for text in texts if text).lower()


def _condition(filters: Mapping[str, str]) -> tuple[str, list[str]]:
    values = {f"{name} = ?": filters.get(name, "") for name in FILTERS}
    values["n IN (SELECT n FROM checks WHERE outcome = ?)"] = filters.get("check", "")
    values["instr(texts, ?) > 0"] = filters.get("search", "").strip().lower()
    values = {term: value for term, value in values.items() if value}
    return " AND ".join(["1", *values]), [*values.values()]
