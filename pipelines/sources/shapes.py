"""Recognise a published shape of data from its path: the kind of source, and a mapping of its columns.

    recognise(Path("coco"), split="train").config      # kind: coco, questions: annotations/instances_train2017.json, …

``SHAPES`` is the table of kinds by their files, ``column_roles.yaml`` that of columns by their names. A proposal is
made from the first rows and from the files that are there; whether a row fits it, the mapping decides.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.columns import Columns, list_in, nested_names, value_at
from darkroom.pipelines.sources.conversations import MODEL
from darkroom.pipelines.sources.jsonl import Row, parsed_json, parsed_lines, rows_at
from darkroom.pipelines.sources.media import is_embedded, part_images, spellings
from darkroom.pipelines.sources.published_files import IMAGE_SUFFIXES, published_files, rows_of
from darkroom.pipelines.sources.source_config import Join, SourceConfig, of_split

_N_ROWS = 100
_MOST_FILES = 200_000
_LONGEST, _LONGEST_NUMBER = 4096, 30
_NO_ROWS = re.compile(r"(dataset_infos?|dataset_dict|state|config|croissant)\.json|\..*")
_MEDIA_SUFFIXES = IMAGE_SUFFIXES | {".mp4", ".mov", ".mkv", ".webm", ".avi"}

_ROLES: Mapping[str, list[str]] = yaml.safe_load(Path(__file__).with_name("column_roles.yaml").read_bytes())
_LETTERS = tuple("ABCDEFGHIJ")
_KEYS = ("question_id", "questionId", "qid", "id")
_TAGGED = re.compile(r"\\boxed\{|<answer>")
_LISTED = re.compile(r"^\s*\(?A[).:]\s.*^\s*\(?B[).:]\s", re.MULTILINE | re.DOTALL)


class Proposal(NamedTuple):
    """A shape in words, and a source's config as its files suggest it."""

    shape: str
    config: SourceConfig


class Shape(NamedTuple):
    """A shape in words, the files it is known by, and its proposal for a folder or file, all files and a split."""

    name: str
    fits: Callable[[Path], bool]
    propose: Callable[["Shape", Path, list[Path], str | None], Proposal]
    kind: str


def recognise(path: Path, *, split: str | None = None) -> Proposal:
    """The shape of a file or folder. Raises ``SourceError`` for an unknown one, or several splits and none chosen."""
    path = path.absolute()
    if not path.exists():
        raise SourceError(f"there is no file or folder {path}")
    below = [path] if path.is_file() else sorted(islice(path.rglob("*"), _MOST_FILES))
    files = [file for file in below if file.is_file()]
    for shape in SHAPES:
        if any(map(shape.fits, files)):
            return shape.propose(shape, path, files, split)
    suffixes = ", ".join(sorted({file.suffix.lower() or file.name for file in files})) or "no files"
    names = "; ".join(shape.name for shape in SHAPES)
    raise SourceError(f"{path} holds no questions or annotations ({suffixes}). Known are: {names}")


def _table(shape: Shape, path: Path, _: list[Path], split: str | None) -> Proposal:
    from darkroom.pipelines.sources.tabular import TabularSource  # takes a second to import

    config = SourceConfig.model_validate({"kind": shape.kind, "path": str(path), "split": split})
    return _mapped(shape.name, config, TabularSource("proposed", config).first_rows(_N_ROWS), path)


def _published(shape: Shape, path: Path, _: list[Path], split: str | None) -> Proposal:
    folder, questions = (path, None) if path.is_dir() else (path.parent, path.name)
    located = {"path": str(folder), "questions": questions}
    config = SourceConfig.model_validate({"kind": shape.kind, "split": split, **located})
    rows = [row for file in published_files("proposed", config)[:_N_ROWS] for row in _first(rows_of(file, config))]
    return (_mapped if shape.kind == "webdataset" else _boxed)(shape.name, config, rows, path)


def _boxed(name: str, config: SourceConfig, rows: Sequence[Mapping[str, Any]], path: Path) -> Proposal:
    columns: dict[str, Any] = {"details": ("question_template",)}
    if any("boxes" in row for row in rows):
        columns |= {"boxes": "boxes", "category": "category", "exclude": {"skip": (True,)}}
        columns["box_frame"] = {"coco": "xywh", "yolo": "fractions"}.get(config.kind, "corners")
    else:
        columns["answer_list"] = "majority"
    return Proposal(name, _completed(config, columns, _Files(path).folder_of(row.get("image") for row in rows)))


def _completed(config: SourceConfig, columns: Mapping[str, Any], folder: Path | None) -> SourceConfig:
    begin = None if folder is None or str(folder) == config.path else str(folder)
    return config.model_copy(update={"columns": Columns(**columns), "folder": begin})


class _Document(NamedTuple):
    file: Path
    keys: str | None
    rows: Sequence[Mapping[str, Any]]
    is_coco: bool = False


def _json(shape: Shape, path: Path, files: list[Path], split: str | None) -> Proposal:
    folder = path if path.is_dir() else path.parent
    documents = [_document(file) for file in of_split(list(filter(_holds_rows, files)), folder, split)]
    asking = [file for file in documents if file.is_coco or _named("question", file.rows)] or documents[:1]
    first = asking[0]
    names = tuple(str(document.file.relative_to(folder)) for document in asking)
    columns: set[str] = set(*first.rows[:1])
    if any(".jsonl" not in document.file.name or set(*document.rows[:1]) != columns for document in asking[1:]):
        raise SourceError(f"{folder} has several files of questions or annotations. Name one: {', '.join(names)}")
    located: dict[str, Any] = {"path": str(folder), "questions": names[0] if len(names) == 1 else names}
    if first.is_coco:
        config = SourceConfig(kind="coco", **located)
        return _boxed("COCO annotations", config, _first(rows_of(first.file, config)), path)
    if path.is_file() and not _named("answer", first.rows):
        documents = [_document(file) for file in sorted(folder.glob("*.json*")) if file != path and _holds_rows(file)]
    rows = list(first.rows[:_N_ROWS])
    for answers in documents:
        if answers.file != first.file and (key := _key(first, answers)):
            join = Join(file=str(answers.file.relative_to(first.file.parent)), rows=answers.keys, on=key)
            by_key = {str(row.get(key)): row for row in answers.rows}
            joined = [{**by_key.get(str(row[key]), {}), **row} for row in rows]
            config = SourceConfig(kind="jsonl", rows=first.keys, join=join, **located)
            return _mapped("questions and answers in two files", config, joined, path)
    return _mapped(shape.name, SourceConfig(kind="jsonl", rows=first.keys, **located), rows, path)


def _first(rows: Iterable[Row]) -> list[Mapping[str, Any]]:
    return [row for _, row, problem in islice(rows, _N_ROWS) if not problem and isinstance(row, Mapping)]


def _document(file: Path) -> _Document:
    """The rows of a JSON file: all of a document, the first of JSON lines."""
    if ".jsonl" in file.name:
        return _Document(file, None, _first(parsed_lines(file)))
    try:
        value = parsed_json(file)
    except SourceError:  # JSON lines by another name
        value = [row for _, row, _ in parsed_lines(file)]
    if isinstance(value, Mapping) and {"images", "annotations"} <= set(value):
        return _Document(file, None, [], is_coco=True)
    keys: list[str] = []
    if isinstance(value, Mapping):
        lengths = {name: len(rows) for name, rows in value.items() if isinstance(rows, list) and rows}
        keys = [max(lengths, key=lengths.__getitem__)] if lengths else ["*"]
    rows = rows_at(value, keys[0], file) if keys else value
    first = next((row for row in rows if isinstance(row, Mapping)), {})
    if _named("question", [first]) is None:  # Visual Genome: paragraphs of questions
        lists = {key: x[0] for key, x in first.items() if isinstance(x, list) and x and isinstance(x[0], Mapping)}
        asking = (key for key, x in lists.items() if _named("question", [x]) and not {"role", "from"} & set(x))
        if inner := next(asking, None):
            keys = [*(keys or ["*"]), inner]
            rows = rows_at(value, ".".join(keys), file)
    return _Document(file, ".".join(keys) or None, [row for row in rows if isinstance(row, Mapping)])


def _key(first: _Document, answers: _Document) -> str | None:
    """The field by which the second file's rows answer the first's."""
    if not first.rows or not _named("answer", answers.rows) or _named("question", answers.rows):
        return None
    return next((key for key in _KEYS if key in first.rows[0] and key in answers.rows[0]), None)


def _mapped(name: str, config: SourceConfig, rows: Sequence[Mapping[str, Any]], path: Path) -> Proposal:
    """A mapping of plain rows by the names of their columns."""
    if not rows:
        raise SourceError(f"{path} holds no rows")
    roles = {role: _named(role, rows) for role in _ROLES}
    question, answers = roles["question"], list(_candidates("answer", rows))
    if roles["choices"]:  # one of them, rather than a list of what people say without seeing them
        answers.sort(key=lambda name: any(list_in(value_at(row, name)) for row in rows))
    answer = next(iter(answers), None)
    if question is None:
        raise SourceError(f"{path} has no column of questions; it has {', '.join(map(repr, rows[0]))}. Name it")
    turns = [turn for row in rows for turn in list_in(value_at(row, question)) or () if isinstance(turn, Mapping)]
    has_replies = any(turn.get("role", turn.get("from")) in MODEL for turn in turns)
    if answer is None or (has_replies and answer not in ("answer", "answers", "ground_truth")):
        answer = question
    images, folder = _images(rows, question, _Files(path))
    columns: dict[str, Any] = {role: column for role, column in roles.items() if column}
    columns |= {"question": question, "answer": answer, "images": images}
    letters = [letter for letter in _LETTERS if any(row.get(letter) for row in rows)]
    if roles["choices"] is None and len(letters) > 1:
        columns["choices"] = tuple(letters)
    elif roles["choices"] is None and any(_LISTED.search(str(value_at(row, question))) for row in rows):
        columns["choices_in_question"] = True
    columns["unwrap_answer"] = any(_TAGGED.search(str(value_at(row, answer))) for row in rows)
    entries = [entry for row in rows if answer != question for entry in list_in(value_at(row, answer)) or ()]
    if any(isinstance(entry, str | Mapping) for entry in entries):  # numbers may be one answer, a box
        columns["answer_list"] = "majority"
    if isinstance(images, str) and "{" not in images:
        columns["text_rows"] = any(_is_empty(value_at(row, images)) for row in rows)
    return Proposal(name, _completed(config, columns, folder))


def _images(
    rows: Sequence[Mapping[str, Any]], question: str, files: "_Files"
) -> tuple[str | tuple[str, ...] | None, Path | None]:
    """The column or path of images, and the folder that they are below: the first column whose images are there."""
    by_path = None
    for name in _candidates("images", rows):
        values = [value for row in rows if not _is_empty(value := value_at(row, name))]
        entries = [entry for value in values for entry in (list_in(value) or [value])]
        if is_embedded(entries[0]):
            return name, None
        if folder := files.folder_of(entries):
            return name, folder
        if template := files.template(name, entries):
            return template, files.root
        by_path = by_path or (name if isinstance(entries[0], str) else None)
    numbered = sorted({name for row in rows for name in row if re.fullmatch(r"image_?\d+", name)})
    is_conversation = any(part_images(value_at(row, question)) for row in rows)
    return tuple(numbered) or (question if is_conversation else by_path), None


class _Files:
    """Images and videos below a folder or beside a file; where none is there, one folder further up."""

    def __init__(self, path: Path) -> None:
        folder = path if path.is_dir() else path.parent
        for self.root in (folder, folder.parent):
            below = islice(self.root.rglob("*"), _MOST_FILES)
            if files := [file for file in below if file.suffix.lower() in _MEDIA_SUFFIXES]:
                break
        self._named: dict[str, list[Path]] = {}
        self._numbered: dict[int, tuple[Path, str]] = {}
        for file in files:
            self._named.setdefault(unicodedata.normalize("NFC", file.name), []).append(file)
            if digits := re.search(r"\d{1,30}\Z", file.stem):
                self._numbered[int(digits[0])] = (file, digits[0])
        self._stems = {file.stem: file for file in files}

    def folder_of(self, names: Iterable[Any]) -> Path | None:
        """The folder that the first of these paths that is there is below."""
        for name in (name for name in names if isinstance(name, str) and len(name) < _LONGEST):
            for spelling in spellings(name):
                parts = [part for part in spelling.split("/") if part not in ("", ".")]
                for file in self._named.get(unicodedata.normalize("NFC", parts[-1]) if parts else "", ()):
                    if list(file.parts[-len(parts) :]) == parts:
                        return file.parents[len(parts) - 1]
        return None

    def template(self, name: str, values: Iterable[Any]) -> str | None:
        """``train2014/COCO_train2014_{image_id:012}.jpg`` for the first number or name that ends a file's stem."""
        for value in (str(value) for value in values if isinstance(value, str | int)):
            file, stem = self._stems.get(value), f"{{{name}}}"
            if file is None and value.isdecimal() and len(value) < _LONGEST_NUMBER and int(value) in self._numbered:
                file, digits = self._numbered[int(value)]
                stem = f"{file.stem.removesuffix(digits)}{{{name}:0{len(digits)}}}"
            if file is not None:
                return (file.parent.relative_to(self.root) / f"{stem}{file.suffix}").as_posix()
        return None


def _named(role: str, rows: Sequence[Mapping[str, Any]]) -> str | None:
    return next(_candidates(role, rows), None)


def _candidates(role: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Columns of a role with a value of its kind in some row, those at the top first."""
    rows = rows[:_N_ROWS]
    names = list(dict.fromkeys(name for row in rows for name in nested_names(row)))
    ranked = [name for last in _ROLES[role] for name in names if name.rpartition(".")[2] == last]
    for name in sorted(ranked, key=lambda name: "." in name):
        if any(_fits(role, value) for row in rows if not _is_empty(value := value_at(row, name))):
            yield name


def _fits(role: str, value: Any) -> bool:
    if role in ("category", "license"):
        return isinstance(value, str)
    if role in ("boxes", "choices"):
        return role == "choices" or re.search(r"\d", str(list_in(value) or "")) is not None
    return isinstance(value, str | int | float | list | bytes) or (role == "images" and is_embedded(value))


def _is_empty(value: Any) -> bool:
    return value is None or (hasattr(value, "__len__") and len(value) == 0)


def _holds_rows(file: Path) -> bool:
    return file.name.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson")) and not _NO_ROWS.fullmatch(file.name)


def _begins(file: Path, suffix: str, content: str) -> bool:
    if file.suffix.lower() != suffix:
        return False
    with file.open("rb") as lines:
        return re.search(content.encode(), lines.read(2048)) is not None


SHAPES = (
    Shape("a dataset saved by save_to_disk", lambda file: file.name == "state.json", _table, "huggingface"),
    Shape("YOLO labels", partial(_begins, suffix=".txt", content=r"\A\s*\d+( -?[\d.]+){4,}"), _published, "yolo"),
    Shape("Pascal VOC annotations", partial(_begins, suffix=".xml", content="<annotation"), _published, "voc"),
    Shape("LabelMe annotations", partial(_begins, suffix=".json", content='"shapes"'), _published, "labelme"),
    Shape("parquet", lambda file: file.suffix == ".parquet", _table, "parquet"),
    Shape("JSON", _holds_rows, _json, "jsonl"),
    Shape("CSV", lambda file: file.suffix == ".csv", _table, "csv"),
    Shape("TSV", lambda file: file.suffix == ".tsv", _table, "tsv"),
    Shape("WebDataset", lambda file: ".tar" in file.suffixes or file.suffix == ".tgz", _published, "webdataset"),
)
"""In this order: a folder is of the first shape that one of its files fits."""
