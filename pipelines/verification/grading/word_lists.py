r"""Word lists and patterns that are data: a TOML file beside the module that uses it, read once.

    [parts]
    judge = ['judge', 'grader']            # as a pattern: any of them
    order = 'ask the @judge@'              # names an earlier part

    [addresses]
    "speaks to the judge" = ['\bdear @judge@\b']

A stage's digest holds these files as it holds the modules (``pipelines/storage/stage_runs.py``).
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def read_words(module: str, name: str = "") -> dict[str, Any]:
    """The entries of the file beside ``module`` (its ``__file__``), without ``parts``, which are filled in; ``name``:
    the file's, if not the module's. Raises ``KeyError`` for a part that is not there."""
    words = tomllib.loads(Path(module).with_name(f"{name or Path(module).stem}.toml").read_text(encoding="utf-8"))
    parts: dict[str, str] = {}
    for name, part in words.pop("parts", {}).items():
        parts[name] = _filled(any_of(part) if isinstance(part, list) else part, parts)
    return {name: _filled(entry, parts) for name, entry in words.items()}


class Patterns:
    """The compiled patterns of a file by their names, as in ``_RE.sign.match(text)``; they hold their own flags."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        vars(self).update((name, re.compile(entry)) for name, entry in words.items() if isinstance(entry, str))

    def __getattr__(self, name: str) -> re.Pattern[str]:
        raise AttributeError(f"the file of words has no pattern {name!r}")


def rewrites(pairs: Sequence[Sequence[str]]) -> list[tuple[re.Pattern[str], str]]:
    """Patterns, each with what stands for what it matches, for ``rewritten``."""
    return [(re.compile(pattern), instead) for pattern, instead in pairs]


def rewritten(text: str, by: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """Rewrite a text by each pattern in turn."""
    for pattern, instead in by:
        text = pattern.sub(instead, text)
    return text


def any_of(patterns: Sequence[str]) -> str:
    """One pattern that matches what any of them matches; earlier ones come first."""
    return f"(?:{'|'.join(patterns)})"


def _filled(entry: Any, parts: dict[str, str]) -> Any:
    if isinstance(entry, str):
        return re.sub(r"@(\w+)@", lambda name: parts[name[1]], entry)
    if isinstance(entry, list):
        return [_filled(element, parts) for element in entry]
    return {name: _filled(element, parts) for name, element in entry.items()} if isinstance(entry, dict) else entry
