"""A source as its YAML file describes it: data alone, opened by the catalog (``catalog.py``); and the local files that
its ``split`` means, by their names: ``train-00000-of-00004.parquet``, ``val/7.txt``, ``instances_val2017.json``."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.columns import Columns

Kind = Literal[
    "jsonl", "parquet", "csv", "tsv", "huggingface", "trajectories", "coco", "yolo", "voc", "labelme", "webdataset"
]
Template = Literal["what", "how_many"]
Use = Literal["sft", "released", "rl"]
"""Takers of a source's shards: the families that are drafted, those of released trajectories, the RL stages."""


class DatasetInfo(BaseModel, extra="forbid", frozen=True):
    """A description of a public dataset, for people: no row depends on it."""

    hub: str
    """Its name on the hub."""
    rows: str
    """Their number, from its card."""
    asks: str
    """The kind of its questions."""
    columns_from: str
    """Origin of its columns: the card, or code that reads it."""
    on_card: bool = False
    """True if that was its card; if not, it was public code or its first shard."""
    get: str = ""
    """Files to unpack beside its questions, where images are separate files; then it needs a local path."""
    remarks: str = ""


class Join(BaseModel, extra="forbid", frozen=True):
    """A second JSON file whose fields belong to the rows: VQA's annotations beside its questions."""

    file: str
    rows: str | None = None
    """The list of its rows, like ``SourceConfig.rows``."""
    on: str
    """The field with the same value in both."""


class SourceConfig(BaseModel, extra="forbid", frozen=True):
    """A source's YAML file."""

    about: DatasetInfo | None = None
    kind: Kind
    """``csv``, ``tsv``: a table with a header. ``coco`` to ``webdataset``: ``published_files.py``. ``trajectories``:
    released ones, in JSON lines where ``questions`` is set, else as ``huggingface`` or parquet."""
    path: str
    questions: str | tuple[str, ...] | None = None
    """The file or files, absolute or below ``path``; default: ``metadata.jsonl`` of ``jsonl``, else all of the kind."""
    rows: str | None = None
    """The list of rows inside a JSON file: ``data``; ``*``: the values of an object; ``*.qas``: a list in each."""
    join: Join | None = None
    ask: tuple[Template, ...] = ("what",)
    """Questions about boxes that have none, of the kinds ``coco``, ``yolo``, ``voc`` and ``labelme``."""
    files: tuple[str, ...] = ()
    """``parquet``, ``huggingface``: which of the dataset's files; default: all."""
    folder: str | None = None
    """The beginning of relative paths in rows, a folder or a ZIP archive; default: ``path``."""
    columns: Columns = Columns()
    config: str | None = None
    split: str | None = None
    """Default: the only one of local files, ``train`` of a hub's dataset."""
    revision: str | None = None
    n_shards: int = Field(default=1, ge=1)
    license: str = ""
    language: str = Field(default="", pattern="^([a-z]{2,3})?$")
    """The language of its questions, ISO 639; for the dataset's card."""
    visual_search: bool | None = None
    """True if its questions ask for something small at one place; for rows without boxes (``pipelines/rl``)."""
    used_for: tuple[Literal["sft", "rl"], ...] | None = None
    """Uses of its rows; default: ``rl`` for a public dataset, else ``sft``. Released trajectories have none."""

    @model_validator(mode="after")
    def _has_a_transcript(self) -> Self:
        if self.is_release != (self.columns.transcript is not None):
            raise ValueError("the kind `trajectories` needs `columns.transcript`, and no other kind has it")
        if self.is_release and self.used_for is not None:
            raise ValueError("the kind `trajectories` has no `used_for`: its rows go to the families of releases")
        return self

    @property
    def is_release(self) -> bool:
        """True if rows are released trajectories: their samples go to the families of ``generation/released.py``."""
        return self.kind == "trajectories"

    @property
    def uses(self) -> tuple[Use, ...]:
        """Uses of its shards that need no request."""
        if self.is_release:
            return ("released",)
        return (("rl",) if self.about else ("sft",)) if self.used_for is None else self.used_for


_NAMES = {"train": ("training",), "validation": ("val", "valid", "dev"), "test": ("testing", "eval", "evaluation")}
_SPELLED = {spelling: name for name, others in _NAMES.items() for spelling in (name, *others)}
_WORD = re.compile(rf"(?<![a-z])({'|'.join(sorted(_SPELLED, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
_SHARD = re.compile(r"\A(\w+)-\d{5}-of-\d{5}\b")


def split_of(file: Path, *, by_folder: bool = False) -> str:
    """The split that a relative path names, by its last word; else empty. ``by_folder``: folders alone count."""
    shard = _SHARD.match(file.name)
    if shard and shard[1] not in ("data", "part", ""):
        return _spelled(shard[1])
    words = _WORD.findall((file.parent if by_folder else file.with_suffix("")).as_posix())
    return _spelled(words[-1]) if words else ""


def of_split(files: Sequence[Path], folder: Path, split: str | None, *, by_folder: bool = False) -> list[Path]:
    """The files of a split. Without ``split`` all, if they are of one. Raises ``SourceError`` that lists the splits."""
    relative = {file: file.relative_to(folder) if file.is_relative_to(folder) else file for file in files}
    splits = {file: split_of(path, by_folder=by_folder) for file, path in relative.items()}
    names = sorted(set(splits.values()))
    if split is None and len(names) < 2:
        return list(files)
    chosen = [file for file, name in splits.items() if split is not None and name == _spelled(split)]
    if not chosen and split == "train" and names == [""]:
        return list(files)
    if not chosen:
        listed = ", ".join(name or f"files of none ({next(f.name for f in files if not splits[f])})" for name in names)
        problem = f"there is no split {split!r}" if split else "there are several splits, and none is chosen"
        raise SourceError(f"{folder}: {problem}. Set `split` to one of: {listed}")
    return chosen


def _spelled(word: str) -> str:
    return _SPELLED.get(word.lower(), word)
