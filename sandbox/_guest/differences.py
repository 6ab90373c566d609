"""Edits as a reply carries them: their size grows with what was changed, not with the code.

A repair of the whole code travels as a difference, three items for each replacement: characters kept since the one
before, characters dropped, and the text in their place. The host has the code and applies one difference after another.

    difference("```\\nx = 1\\n```", "x = 1\\n")     [0, 4, "", 6, 3, ""]
"""

from collections.abc import Iterable, Iterator, Sequence
from os.path import commonprefix
from typing import Any

MAX_EDITS, MAX_REPAIRS = 128, 8
MAX_CHANGED_CHARS = 1 << 16
"""Of the text that all repairs together put into the code."""
MAX_REPLACEMENTS = 1024
"""Of one repair; with more it is one replacement of the whole."""
MAX_PART_CHARS = 256
"""Of each side of an edit of a part of the code."""


class DoesNotApply(ValueError):
    """The difference was made from another text, or is none."""


def rows_of(code: str, edits: Sequence[tuple[str, str, str]]) -> list[list[object]]:
    """`[kind, null, difference]` for repairs of the whole code, `[kind, before, after]` for edits of a part of it."""
    rows: list[list[object]] = []
    for kind, before, after in edits[:MAX_EDITS]:
        if before == code:
            code = after
            rows.append([kind, None, difference(before, after)])
        else:
            rows.append([kind, before[:MAX_PART_CHARS], after[:MAX_PART_CHARS]])
    if len(edits) > MAX_EDITS:
        rows[-1] = [edits[-1][0], "", f"# … and {len(edits) - MAX_EDITS + 1} more"]
    return rows


def n_changed_chars(edits: Iterable[tuple[str, str, str]]) -> int:
    """Count the characters that repairs of the whole code put into it."""
    return sum(len(text) for _, before, after in edits for text in difference(before, after)[2::3] if text)


def difference(before: str, after: str) -> list[Any]:
    """Make the items from which `apply_difference` makes `after`."""
    flat: list[Any] = []
    end = 0
    for start, stop, text in _replacements(before, after):
        flat += [start - end, stop - start, text]
        end = stop
    return flat if len(flat) <= 3 * MAX_REPLACEMENTS else [0, len(before), after]


def apply_difference(before: str, flat: Sequence[object]) -> str:
    """The text after it, no longer than both together. Raises DoesNotApply."""
    if len(flat) % 3:
        raise DoesNotApply("a difference has three items for each replacement")
    parts, end = [], 0
    for n_kept, dropped, text in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        if type(n_kept) is not int or type(dropped) is not int or not isinstance(text, str):
            raise DoesNotApply("a replacement is two numbers and a text")
        start = end + n_kept
        if n_kept < 0 or dropped < 0 or start + dropped > len(before):
            raise DoesNotApply("a replacement lies outside of the code")
        parts += [before[end:start], text]
        end = start + dropped
    return "".join([*parts, before[end:]])


def _replacements(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """Start and end in `before`, and the text that stands there afterwards."""
    start_of_after = before.find(after)
    if start_of_after >= 0:  # what was around it is gone
        yield 0, start_of_after, ""
        yield start_of_after + len(after), len(before), ""
        return
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old) != len(new):
        old, new = [before], [after]
    start = 0
    for line, changed in zip(old, new, strict=True):
        if line != changed:
            head = len(commonprefix((line, changed)))  # noqa: RUF071 - of characters, as is meant here
            tail = len(commonprefix((line[head:][::-1], changed[head:][::-1])))  # noqa: RUF071
            yield start + head, start + len(line) - tail, changed[head : len(changed) - tail]
        start += len(line)
