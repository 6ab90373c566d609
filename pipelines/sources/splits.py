"""Splits of local files by their names: ``train-00000-of-00004.parquet``, ``val/7.txt``, ``instances_val2017.json``."""

import re
from collections.abc import Sequence
from pathlib import Path

from darkroom.pipelines.sources import SourceError

_NAMES = {"train": ("training",), "validation": ("val", "valid", "dev"), "test": ("testing", "eval", "evaluation")}
_SPELLED = {spelling: name for name, others in _NAMES.items() for spelling in (name, *others)}
_WORD = re.compile(rf"(?<![a-z])({'|'.join(sorted(_SPELLED, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
_SHARD = re.compile(r"\A(\w+)-\d{5}-of-\d{5}\b")


def split_of(file: Path, *, by_folder: bool = False) -> str:
    """The split that a relative path names, the last word counts; empty where it names none. ``by_folder``: only
    folders, where files are named as their images are."""
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
