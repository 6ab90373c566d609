r"""Word lists and patterns that are data: a TOML file beside the module that uses it, read once.

    [parts]
    judge = ['judge', 'grader']            # as a pattern: any of them
    order = 'ask the @judge@'              # names an earlier part

    [addresses]
    "speaks to the judge" = ['\bdear @judge@\b']

A stage's digest holds these files as it holds the modules (``pipelines/storage/stage_runs.py``).

``WordModel`` is a linear model over tokens and their classes in several languages; two files hold it: the
classes (``NAME_classes.toml``, an entry with ``*`` matches by its start or end, ``_`` is a space) and the weights
(``NAME_weights.json``), which ``python -m tests.measurements.leak_model --write`` makes.
"""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

COMPILING = Lock()
"""Held while a large pattern is compiled: ``re`` keeps it, and threads that ask meanwhile would each make it."""


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


MAX_TOKENS, NEAR, _MOST_WORDS = 160, 4, 7
"""Tokens of a part of a text, so that its pairs stay few; between two that are near each other; of an entry."""
_TOKEN = re.compile(r"[\u4e00-\u9fff]|\d+(?:[.,]\d+)*|[^\W\d_\u4e00-\u9fff]+\d*|[=°?？\"“„«「『‘]")
_SENTENCE, _PIECE = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[。！？；])"), re.compile(r"(?s).{1,480}")


class WordModel:
    """Scores parts of a text by the classes of their tokens, alone and in pairs (``a>b``: in this order; ``a~b``: near
    each other), and by the tokens (``=token``)."""

    def __init__(self, module: str, name: str) -> None:
        classes = read_words(module, f"{name}_classes")
        self._values = {value: re.compile(pattern) for value, pattern in classes.pop("values").items()}
        self._classes: defaultdict[str, set[str]] = defaultdict(set)
        for class_name, entry in ((each, entry) for each, entries in classes.items() for entry in entries.split()):
            phrase = " ".join(_TOKEN.findall(entry.replace("_", " ")))
            self._classes["*" * entry.startswith("*") + phrase + "*" * entry.endswith("*")].add(class_name)
        self._beginnings = {first for first, *more in map(str.split, self._classes) if more}
        self.features = lru_cache(maxsize=2048)(self._features)  # of both kinds; thoughts have sentences in common
        self.weights = json.loads(Path(module).with_name(f"{name}_weights.json").read_text(encoding="utf-8"))

    def evidence(self, text: str, kind: str) -> str | None:
        """The first sentence, or pair of them, that scores above zero, with the features that weigh most in it."""
        weights: dict[str, float] = self.weights[kind]
        for part in parts_of(text):
            known = sorted(weights.keys() & self.features(part), key=lambda feature: (-weights[feature], feature))
            if weights[""] + sum(weights[feature] for feature in known) > 0:
                return f"{part.strip()} ({', '.join(known[:3])})"
        return None

    def _features(self, part: str) -> set[str]:
        tokens = _TOKEN.findall(plain_quotes(part))[:MAX_TOKENS]
        found = sorted(self._found(tokens))
        pairs = [(a, b, other - end) for n, (_, end, a) in enumerate(found) for other, _, b in found[n + 1 :] if a != b]
        marked = {f"{a}{mark}{b}" for a, b, gap in pairs if gap >= 0 for mark in (">~" if gap <= NEAR else ">")}
        return {name for *_, name in found} | marked | {f"={token.lower()}" for token in tokens}

    def _found(self, tokens: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Start, end and name of each class; the longest entry of it that starts there."""
        lower = [token.lower() for token in tokens]
        for start, token in enumerate(tokens):
            longest = {name: start + 1 for name, value in self._values.items() if value.match(token)}
            n_words = _MOST_WORDS if lower[start] in self._beginnings else 1
            for end in range(start + 1, min(start + n_words, len(lower)) + 1):
                longest |= dict.fromkeys(self._names(" ".join(lower[start:end]), lower[end - 1]), end)
            yield from ((start, end, name) for name, end in longest.items())

    def _names(self, phrase: str, last: str) -> Iterator[str]:
        starts = [f"{phrase[:cut]}*" for cut in range(len(phrase) - len(last) + 2, len(phrase) + 1)]
        ends = [f"*{phrase[cut:]}" for cut in range(len(phrase))] if phrase == last else []
        yield from (name for entry in (phrase, *starts, *ends) for name in self._classes.get(entry, ()))


def plain_quotes(text: str) -> str:
    """Write apostrophes straight, and a single quotation mark that opens as a double one."""
    return re.sub(r"(?<!\w)['‘](?=\w)", '"', text.replace("’", "'"))


def parts_of(text: str) -> list[str]:
    """The sentences of a text, long ones in pieces, and each with the next."""
    pieces = [piece for sentence in _SENTENCE.split(text) for piece in _PIECE.findall(sentence) if piece.strip()]
    return [*pieces, *map(" ".join, pairwise(pieces))]
