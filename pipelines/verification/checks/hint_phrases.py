"""Words and names that reveal a hint: the paraphrases of "I was given the answer".

Privileged facts show in five ways (``hint_phrases.toml``). Anywhere: a source outside of the image is named, or the
hint's own words and the order to hide it are repeated. Before the first look: certainty where nothing was seen yet,
coordinates and angles that cannot be seen, and what the look will show. A thought may guess ("roughly in the upper
left"), look ("the sign seems tilted") and measure in code. Measured by ``python -m measurements.leaks``.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache

from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.verification.grading.word_lists import read_words

PHRASES: dict[str, list[str]] = read_words(__file__)
"""The five ways, ``name`` of names in code, ``solution`` of a solution that was there before, ``planned`` of a plan."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATHS = re.compile(r"image_path(?:_\d+)?|video_path(?:_\d+)?")


@cache
def phrases(way: str) -> re.Pattern[str]:
    """One pattern of all of a way's, compiled when it is first asked for."""
    return re.compile("|".join(PHRASES[way]), re.IGNORECASE)


def hint_phrase(text: str) -> str | None:
    """The words by which a text refers to a hint; None when there are none."""
    return _first_of(("source", "pretence"), text)


def unseen_phrase(thought: str) -> str | None:
    """The words by which a thought before the first look is sure of what only the look can show; else None."""
    return _first_of(("certain", "numbers", "foreseen"), thought)


def _first_of(ways: Sequence[str], text: str) -> str | None:
    plain = " ".join(text.split()).replace("\u2019", "'")
    return next((match[0].strip() for way in ways if (match := phrases(way).search(plain))), None)


def hint_name(code: str) -> str | None:
    """A variable, function, argument or attribute of the code whose name says that its value was given; else None."""
    return next((name for name in _names(code) if phrases("name").search(_CAMEL.sub("_", name))), None)


def reads_file_name(code: str) -> bool:
    """Whether the code turns a part of an input's path into a number: then the path, not the image, tells it."""
    tree = parsed(code)
    if tree is None:
        return False
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in ("int", "float")]
    names = {name.id for call in numbers for name in ast.walk(call) if isinstance(name, ast.Name)}
    variables = _from_paths(tree)
    return any(_PATHS.fullmatch(name) or name in variables for name in names)


def tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of code, as far as it can be read: code that does not parse fails ``executes``."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(code).readline)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


def _from_paths(tree: ast.AST) -> set[str]:
    """Variables that are assigned from an input's path, also by way of others."""
    variables: set[str] = set()
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and not _opened(node.value)]
    for node in assignments * 3:
        names = [name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)]
        if any(_PATHS.fullmatch(name) or name in variables for name in names):
            variables |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return variables


def _opened(value: ast.expr) -> bool:
    """`Image.open(image_path)`, `cv2.imread(image_path)`: what comes of it is the image."""
    calls = [_called(node) for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(call in ("open", "imread", "VideoReader") for call in calls)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _names(code: str) -> list[str]:
    tree = parsed(code)
    if tree is None:
        return re.findall(r"[A-Za-z_]\w*", code)
    values = [getattr(node, field, None) for node in ast.walk(tree) for field in ("id", "attr", "arg", "name")]
    return [value for value in values if isinstance(value, str)]
