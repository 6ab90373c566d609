"""Writing a layout's files, each record verified as its trainer will read it: rows by group, images, rejects.

Equal rows give equal bytes. In JSON lines, rows with images come before those without: ``datasets`` takes the type of a
column from the first rows, and would take lists that are all empty for lists of nothing.

Verified are: as many placeholders as images and none of other media; roles alternate, from the system's over the user's
to the model's (to the user's in prompts); no message is empty.
"""

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.pipelines.publishing.dataset_reader import KEYS, read_files
from darkroom.pipelines.publishing.layouts.base import Layout
from darkroom.pipelines.publishing.layouts.export_source import LayoutError
from darkroom.pipelines.publishing.layouts.turns import IMAGE, PLACEHOLDERS, Unfit, Unrenderable
from darkroom.pipelines.publishing.manifest import RowDigest, row_digest
from darkroom.pipelines.sources.jsonl import parsed_lines

REJECTS = "rejects.jsonl"
ROWS_PER_GROUP = 64
_WITHOUT_IMAGES = ".without_images"
_ROLES = {"human": "user", "gpt": "assistant"}
_OTHER_MEDIA = [f"<{name}>" for name in PLACEHOLDERS if f"<{name}>" != IMAGE]


class RecordWriter:
    """Writes the rows of one layout into an empty folder. A context manager: leaving it completes the files."""

    def __init__(self, folder: Path, layout: Layout, split: str) -> None:
        self._folder, self._layout, self._split = folder, layout, split
        self._open = ExitStack()
        self._lines: dict[str, IO[str]] = {}
        self._parquet: dict[str, pq.ParquetWriter] = {}
        self._waiting: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._images: set[str] = set()
        self.n_rows: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.graders: Counter[str] = Counter()
        self.n_images = self.most_pixels = 0

    def __enter__(self) -> Self:
        self._rejects = self._open.enter_context((self._folder / REJECTS).open("w"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            for name in self._parquet:
                self._flush(name)
        self._open.close()
        for part in sorted(self._folder.glob(f"*{_WITHOUT_IMAGES}")):
            with part.open("rb") as rest, part.with_suffix("").open("ab") as whole:
                shutil.copyfileobj(rest, whole)
            part.unlink()

    def image(self, path: str, data: bytes) -> None:
        """One image file; the same path again writes nothing, since its name is its content's digest."""
        if path not in self._images:
            self._images.add(path)
            target = self._folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)

    def row(self, record: dict[str, Any], *, group: str = "", grader: str = "") -> None:
        """One record, into the file ``<split>_<group>``, or ``<split>``; ``grader``: the kind of a prompt's."""
        stem = f"{self._split}_{group}" if group else self._split
        images = record.get("images", ())
        if self._layout.schema is None:
            name = f"{stem}.jsonl"
            part = name if images else f"{name}{_WITHOUT_IMAGES}"
            if part not in self._lines:
                self._lines[part] = self._open.enter_context((self._folder / part).open("w"))
            self._lines[part].write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            name = f"{stem}.parquet"
            if name not in self._parquet:
                writer = pq.ParquetWriter(self._folder / name, self._layout.schema, compression="zstd")
                self._parquet[name] = self._open.enter_context(writer)
            self._waiting[name].append(record)
            if len(self._waiting[name]) == ROWS_PER_GROUP:
                self._flush(name)
        self.n_rows[name] += 1
        if grader:
            self.graders[grader] += 1
        self.n_images += len(images)

    def reject(self, row_id: str, error: Unrenderable) -> None:
        self.reasons[error.reason.value] += 1
        line = {KEYS[self._layout.of]: row_id, "reason": error.reason.value, "evidence": error.evidence}
        self._rejects.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _flush(self, name: str) -> None:
        if rows := self._waiting.pop(name, []):
            self._parquet[name].write_table(pa.Table.from_pylist(rows, schema=self._layout.schema))


def verify(layout: Layout, record: Mapping[str, Any]) -> None:
    """Raises ``Unrenderable`` for a record that the layout's trainer would refuse, drop or misread."""
    column = record[layout.messages]
    # a layout whose prompt is one text has it as the user's only message
    messages = [{"role": "user", "content": column}] if isinstance(column, str) else column
    _verify_roles([_role(message) for message in messages], layout)
    for message in messages:
        if not any(part["type"] == "image" or part["text"].strip() for part in _parts(message)):
            raise Unrenderable(Unfit.EMPTY_TURN, f"a message of the {_role(message)} is empty")
    n_images, n_placeholders = len(record.get("images", ())), placeholders(messages)
    if n_images != n_placeholders:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"{n_placeholders} placeholders, {n_images} images")
    if names := [name for text in _texts(messages) for name in _OTHER_MEDIA if name in text]:
        raise Unrenderable(Unfit.IMAGES_DIFFER, f"placeholders that stand for nothing: {', '.join(names)}")


def verify_written(folder: Path, layout: Layout, files: Mapping[str, int]) -> dict[str, list[RowDigest]]:
    """Read files back, for the digests of their rows. Raises ``LayoutError`` unless every row is there with as many
    images as it shows."""
    digests = defaultdict[str, list[RowDigest]](list)
    for name, number, row_id, record in exported_rows(folder):
        try:
            verify(layout, record)
        except Unrenderable as error:
            raise LayoutError(f"{name}, row {number}, reads back otherwise than it was written: {error}") from error
        digests[name].append((row_id, row_digest(record)))
    for name, n_rows in files.items():
        if (n_read := len(digests[name])) != n_rows:
            raise LayoutError(f"{name} holds {n_read} rows of the {n_rows} that were written; is the disk full?")
    return digests


def exported_rows(folder: Path) -> Iterator[tuple[str, int, str, Any]]:
    """The rows of an export: file, number or line, id (the place where a row has none), and value."""
    files = {path for path in folder.iterdir() if path.suffix in (".jsonl", ".parquet")} - {folder / REJECTS}
    for file in sorted(files):
        numbered: Iterator[tuple[int, Any]] = enumerate(read_files([file]), start=1)
        if file.suffix == ".jsonl":
            numbered = ((number, row) for number, row, _ in parsed_lines(file))
        for number, row in numbered:
            parts = (row, row.get("extra_info")) if isinstance(row, dict) else ()
            names = [part.get(name) for part in parts if isinstance(part, dict) for name in KEYS.values()]
            yield file.name, number, str(next(filter(None, names), f"{file.name}:{number}")), row


def placeholders(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the images of messages as a trainer does."""
    in_parts = [part for message in messages for part in _parts(message) if part["type"] == "image"]
    return len(in_parts) + sum(text.count(IMAGE) for text in _texts(messages))


def _verify_roles(roles: Sequence[str], layout: Layout) -> None:
    turns = roles[1:] if roles[:1] == ["system"] else list(roles)
    if layout.in_pieces:
        turns = [role for role, run in groupby(turns) for _ in ([*run] if role != "assistant" else [role])]
    last = "user" if layout.prompts_only else "assistant"
    expected = ["user" if index % 2 == 0 else "assistant" for index in range(len(turns))]
    if turns != expected or turns[-1:] != [last]:
        evidence = f"the roles are {', '.join(roles)}; they must alternate, ending in {last}"
        raise Unrenderable(Unfit.ROLES_DIFFER, evidence)


def _role(message: Mapping[str, Any]) -> str:
    role: str = message.get("role") or message["from"]
    return _ROLES.get(role, role)


def _content(message: Mapping[str, Any]) -> Any:
    return message["content"] if "content" in message else message["value"]


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Texts in which a trainer looks for placeholders: those of parts are not."""
    return (content for message in messages if isinstance(content := _content(message), str))


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = _content(message)
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
