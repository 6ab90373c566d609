r"""Lists: every element that is expected, none more, none less; in the expected order where the question asks for one.

``red, green and blue``, ``red; green; blue``, ``["red", "green", "blue"]``, ``red -> green -> blue``, one per line or
numbered in one line, single letters with spaces, ``x = 2, x = -3``.
Elements are compared as numbers where both are numbers, else as words. Lists in lists and expressions are not covered.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product

from darkroom.pipelines.verification.grading.answer_text import bare, levels, open_words
from darkroom.pipelines.verification.grading.number_words import nth
from darkroom.pipelines.verification.grading.numeric import as_number, same_number
from darkroom.pipelines.verification.grading.sentences import cores
from darkroom.pipelines.verification.grading.text_match import same_text
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words

MAX_ELEMENTS = 64
_RE = Patterns(read_words(__file__))


def same_list(
    answer: str, expected: str, *, question: str = "", is_ordered: bool = False, tolerance: float = 0
) -> bool:
    """Return whether the answer, or a list in its sentence, has the elements of ``expected``; a pair is no set."""
    is_set = bare(expected).lstrip("\\")[:1] == "{"
    lists_of = (core for core in cores(answer, question) if not (is_set and core.startswith("(")))
    return any(_same(core, expected, question, is_ordered, tolerance) for core in lists_of)


def _same(answer: str, expected: str, question: str, is_ordered: bool, tolerance: float) -> bool:
    """Split at commas alone or at every "and" too, or as the steps of an order."""

    def same(part: str, each: str) -> bool:
        return same_element(part, each, question=question, tolerance=tolerance)

    splits = ([elements(text, at_and=at_and) for at_and in (True, False)] for text in (answer, expected))
    parts_of_answer, expected_parts = splits
    others = product((solutions(answer), *_other_splits(answer, is_ordered)), (*expected_parts, solutions(expected)))
    return any(
        parts and len(parts) == len(each) and (all(map(same, parts, each)) if is_ordered else paired(parts, each, same))
        for parts, each in chain(zip(parts_of_answer, expected_parts, strict=True), others)
    )


def _other_splits(answer: str, is_ordered: bool) -> Iterator[tuple[str, ...]]:
    """An order's arrows, dashes, "1. … 2. …" in one line, "A B C"."""
    inner = _without_brackets(bare(answer))
    if "\n" in inner:
        return
    text = _RE.first.sub("", " ".join(inner.split()))
    patterns = (_RE.arrow, _RE.dash) if is_ordered else (_RE.dash, _RE.joined, _RE.times)
    yield from (_split_at(pattern, text) for pattern in patterns)
    if is_ordered:
        steps = _split_at(_RE.arrow, _RE.step.sub(" > ", text))
        yield steps
        names = [nth(match[1]) if (match := _RE.ordinal.match(step)) else "1th" for step in steps]
        if steps and names == [f"{n}th" for n in range(1, len(steps) + 1)]:
            yield tuple(_RE.ordinal.sub("", step) for step in steps)
    if _RE.numbered.match(text):
        yield _split_at(_RE.numbered, text)
    if _RE.letters.match(text):
        yield tuple(text.split())


def _split_at(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    if not pattern.search(text):
        return ()
    parts = [part.strip().rstrip(",;").strip() for part in pattern.split(text)]
    parts = parts[1:] if parts and not parts[0] else parts
    if pattern is _RE.joined:
        parts = [piece for part in parts for piece in elements(part) or (part,)]
    return tuple(_RE.last.sub("", part) for part in parts) if 1 < len(parts) <= MAX_ELEMENTS and all(parts) else ()


def solutions(text: str) -> tuple[str, ...]:
    """The values of "x = -2 or x = 5", of "x_1 = -2, x_2 = 5" and of "x ∈ {-2, 5}"; none if two letters are named."""
    parts = _RE.between.split(" ".join(_RE.in_tex.sub(" ", bare(text)).split()))
    assigned = [_RE.assigned.match(part) for part in parts]
    if not assigned[0] or len({match[1] for match in assigned if match}) > 1 or not all(assigned):
        return ()
    values = [part[match.end() :].strip(" $") for part, match in zip(parts, assigned, strict=True) if match]
    return both_signs(elements(values[0]) if len(values) == 1 else values)


def both_signs(parts: Sequence[str]) -> tuple[str, ...]:
    """Values, "±4" as 4 and -4; none if one is empty."""
    plain = [part.replace(r"\pm", "±").strip() for part in parts]
    signed = tuple(part.replace("±", sign).strip() for part in plain for sign in "+-"[: 1 + ("±" in part)])
    return signed if all(signed) else ()


def variable(text: str) -> str:
    """``x`` of "x = 2, x = -3"; empty where no variable is named."""
    assigned = _RE.assigned.match(bare(text))
    return assigned[1] if assigned else ""


def elements(text: str, *, at_and: bool = True) -> tuple[str, ...]:
    """The elements of a list as it is written; none where one is empty or there are too many of them."""
    inner = _without_brackets(bare(text))
    if "\n" in inner:
        parts = [_RE.bullet.sub("", line) for line in inner.splitlines() if line.strip()]
    else:
        parts = _split(inner, re.compile(";") if ";" in inner else _RE.comma)
    parts = [_RE.last.sub("", part.strip().removesuffix(",")) for part in parts]
    if at_and:
        parts = [piece for part in parts for piece in _split(_RE.both.sub("", part), _RE.joint)]
    stripped = tuple(part.strip() for part in parts)
    return stripped if all(stripped) and len(stripped) <= MAX_ELEMENTS else ()


def same_element(element: str, expected: str, *, question: str, tolerance: float) -> bool:
    """Two elements, as numbers if both are, else as words."""
    gloss = _RE.gloss.search(element)
    if gloss and "(" not in expected and not open_words(gloss[0]):
        element = element[: gloss.start()]
    element, expected = (_RE.shape.sub("", text) for text in (element, expected))
    pairs = [_RE.pair.match(text) for text in (element, expected)]
    if pairs[0] and pairs[1]:
        return pairs[0].groups() == pairs[1].groups()  # "A-2", "A: 2"
    number, expected_number = as_number(bare(element)), as_number(bare(expected))
    same = same_number(number, expected_number, question=question, tolerance=tolerance)
    return same_text(element, expected, question) or tight(element) == tight(expected) if same is None else same


def tight(text: str) -> str:
    """A point or an interval without its spaces: "(1,4)" is "(1, 4)", which may also be written "(1; 4)"."""
    inner = re.sub(r"\s", "", text.strip(" $"))
    return inner.replace(";", ",") if inner[:1] in ("(", "[") else inner or "-"


def paired(parts: Sequence[str], expected_parts: Sequence[str], same: Callable[[str, str], bool | None]) -> bool:
    """Return whether each element finds one of its own; the first that fits is taken."""
    remaining = list(expected_parts)
    for part in parts:
        if (fit := next((each for each in remaining if same(part, each)), None)) is None:
            return False
        remaining.remove(fit)
    return not remaining


def _without_brackets(text: str) -> str:
    match = _RE.surrounded.match(text)
    inner = next((group for group in match.groups() if group is not None), text) if match else text
    return inner.strip() if all(level >= 0 for level in levels(inner)) else text


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split where no bracket is open: ``(1, 2), (3, 4)`` are two."""
    depths = levels(text)
    parts: list[str] = []
    end = 0
    for match in separator.finditer(text):
        if not depths[match.start()]:
            parts.append(text[end : match.start()])
            end = match.end()
    return [*parts, text[end:]]
