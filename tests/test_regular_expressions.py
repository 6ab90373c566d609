"""Every regular expression that may meet text of a model, a session or a data set takes time linear in it.

Each is read as Python parses it, and given, for each of its repetitions, texts that repeat what it repeats: after what
may stand before it, with that, and that alone; and that end as it does not want. What backtracks takes half a
second of CPU time or more for such a text of 20,000 characters, and hours for a longer one; what does not takes
milliseconds.
"""

import ast
import importlib
import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from darkroom.pipelines.verification.grading.word_lists import Patterns
from tests.matrices import first_quickly

ROOT = Path(__file__).parents[1]
N_CHARS = 20_000
BOUNDED = {
    "pipelines/verification/grading/judged.py": 1000,  # MAX_CHARS
    "pipelines/verification/grading/numeric.py": 60,  # MAX_NUMBER_CHARS
}
"""Modules that look at no longer text."""
OWN_TEXT = ("pipelines/demo", "pipelines/models/prompts", "annotation/_plugin")
"""Text of this project, and addresses that a web server has bounded."""
LIMIT_SECONDS = 0.2
FLAGS = re.compile(r"\A\(\?[ais]+\)")
"""They stand first; ``pattern.flags`` holds them too."""
USES = re.compile(r"^import re$|\bPatterns\(", re.MULTILINE)
ANCHORED = {"match": r"\A(?:{})", "fullmatch": r"\A(?:{})\Z"}
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
CATEGORIES = {kinds.CATEGORY_DIGIT: "0", kinds.CATEGORY_SPACE: " ", kinds.CATEGORY_NOT_WORD: "-"}


def modules() -> list[str]:
    folders = ("sandbox", "pipelines", "train", "examples/adapters")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    names = [str(path.relative_to(ROOT)) for path in paths if USES.search(path.read_text(encoding="utf-8"))]
    return sorted(name for name in names if not name.startswith(OWN_TEXT))


def patterns_of(name: str) -> Iterator[tuple[str, int]]:
    """The module's compiled patterns, and the literal ones of its calls; anchored where they are used so."""
    source = (ROOT / name).read_text(encoding="utf-8")
    module = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    named = [(f"{name}.{each}", pattern) for name, value in _files_of(module) for each, pattern in vars(value).items()]
    for attribute, value in (*vars(module).items(), *named):
        uses = set(re.findall(rf"\b{attribute}\.([a-z]+)\(", source))
        anchored = ANCHORED[uses.pop()] if len(uses) == 1 and uses <= ANCHORED.keys() else "{}"
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        for pattern in (each[0] if isinstance(each, tuple) and each else each for each in inner):
            if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                yield anchored.replace("{}", FLAGS.sub("", pattern.pattern)), pattern.flags
    for call in ast.walk(ast.parse(source)):
        match call:
            case ast.Call(ast.Attribute(ast.Name("re"), function), [ast.Constant(str(pattern)), *_]):
                yield ANCHORED.get(function, "{}").replace("{}", pattern), 0


def _files_of(module: ModuleType) -> list[tuple[str, Patterns]]:
    return [(name, value) for name, value in vars(module).items() if isinstance(value, Patterns)]


def texts_of(items: Any) -> list[str]:
    """A few of the texts that match, roughly."""
    found = [""]
    for item in items:
        found = [start + text for start, text in islice(product(found, _texts_of(*item)), 8)]
    return list(dict.fromkeys(found))[:6]


def _texts_of(kind: Any, value: Any) -> list[str]:
    if kind is kinds.LITERAL:
        return [chr(value)]
    if kind is kinds.CATEGORY:
        return [CATEGORIES.get(value, "a")]
    if kind is kinds.RANGE:
        return [chr(value[0])]
    if kind is kinds.IN and value[0][0] is not kinds.NEGATE:
        return [text for item in value for text in _texts_of(*item)][:4]
    if kind in REPEATS:
        return [text * max(value[0], 1) for text in texts_of(value[2])] + [""] * (value[0] == 0)
    if kind is kinds.BRANCH:
        return [text for branch in value[1] for text in texts_of(branch)][:6]
    if kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP):
        return texts_of(value[3] if kind is kinds.SUBPATTERN else value)
    return ["a", " "] if kind in (kinds.ANY, kinds.IN, kinds.NOT_LITERAL) else [""]


def repeated(items: Any, before: list[str]) -> Iterator[tuple[str, str]]:
    """What may stand before a repetition without bound, and what it repeats."""
    for place, (kind, value) in enumerate(items):
        starts = [start + text for start, text in product(before, texts_of(list(items)[:place]))][:4]
        if kind in REPEATS:
            if value[1] is kinds.MAXREPEAT:
                yield from product(starts, texts_of(value[2]))
            yield from repeated(value[2], starts)
        elif kind is kinds.SUBPATTERN:
            yield from repeated(value[3], starts)
        elif kind is kinds.ATOMIC_GROUP:
            yield from repeated(value, starts)
        elif kind is kinds.BRANCH:
            for branch in value[1]:
                yield from repeated(branch, starts)
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            yield from repeated(value[1], starts)


def hostile_texts(pattern: str, flags: int, n_chars: int) -> Iterator[str]:
    for start, unit in islice(repeated(parser.parse(pattern, flags), [""]), 12):
        for head, body in {(start, unit), ("", start + unit), ("", start)}:
            if body:
                yield head + body * (n_chars // len(body)) + "\0"


def takes_too_long(pattern: re.Pattern[str], text: str) -> bool:
    def give_up(*_: object) -> None:
        raise TimeoutError

    earlier = signal.signal(signal.SIGVTALRM, give_up)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)  # the CPU time of this process
        for _ in pattern.finditer(text):
            pass
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)
    return False


@cache
def hard_text(pattern: str, flags: int, n_chars: int) -> str | None:
    """The first text that takes too long; a pattern stands in all modules that import it."""
    compiled = re.compile(pattern, flags)
    return next((text for text in hostile_texts(pattern, flags, n_chars) if takes_too_long(compiled, text)), None)


@pytest.mark.parametrize("name", modules())
def test_time_is_linear_in_the_text(name: str) -> None:
    for pattern, flags in patterns_of(name):
        text = hard_text(pattern, flags, BOUNDED.get(name, N_CHARS))
        assert text is None, f"{pattern!r} backtracks over {text[:60]!r}…"


GRADING = [name for name in modules() if "Patterns(" in (ROOT / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", GRADING)
def test_every_pattern_that_a_module_uses_is_in_its_file(name: str) -> None:
    module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    for attribute, patterns in _files_of(module):
        used = re.findall(rf"\b{attribute}\.(\w+)", (ROOT / name).read_text(encoding="utf-8"))
        assert used
        assert set(used) == vars(patterns).keys()


BACKTRACKING = first_quickly([r"[\d.,]*\d", "<answer>(.*?)</answer>", r"<(?=\s*/?\s*(?:code)>)", r"\s+and"], n_quick=2)


@pytest.mark.parametrize("pattern", BACKTRACKING)
def test_a_pattern_that_backtracks_is_found(pattern: str) -> None:
    assert hard_text(pattern, 0, 5 * N_CHARS)  # so long that no machine is too fast
