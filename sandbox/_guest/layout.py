"""Repairs of indentation: code that does not parse in, changed code out, or the same where a repair does not apply.

They work on lines and do not know where a string begins, so the lines of a string may move along with the code.
"""

import ast
import contextlib
import itertools
import re
from collections.abc import Mapping
from functools import partial

import autopep8

_MAX_REFORMATTED = 10_000
"""Characters up to which autopep8 is asked; it takes up to a millisecond a line."""
_MAX_PASSES = 8
"""Without a bound autopep8 never ends on some texts, such as 500 lines with two spaces before each."""
_INDENTATION = ["E1", "W1", "E9", "W6"]
_MARGIN = re.compile(r"^([ \t]*)(?=\S)", re.MULTILINE)
_TABS = re.compile(r"^ *\t[ \t]*", re.MULTILINE)


def dedent(code: str) -> str:
    """The first line's indentation taken from every line that has it; a line that lacks it may be part of a string."""
    first = _MARGIN.search(code)
    return re.sub(f"^{first[1]}", "", code, flags=re.MULTILINE) if first and first[1] else code


def align_first_line(code: str) -> str:
    """A first line that lost its indentation, as happens when a block is cut out of a text."""
    margins = list(itertools.islice(_MARGIN.finditer(code), 2))
    if len(margins) < 2 or margins[0][1] == margins[1][1]:
        return code
    first, second = margins
    return dedent(code[: first.start()] + second[1] + code[first.end() :])


def expand_tabs(code: str) -> str:
    """Tabs before a line as spaces, eight columns wide (Python 2) or four; not where both parse and mean two things."""
    meanings: dict[str, str] = {}
    for width in (8, 4):
        text = _TABS.sub(partial(_expanded, width), code)
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            meanings[ast.dump(ast.parse(text))] = text
    return meanings.popitem()[1] if len(meanings) == 1 else code


def _expanded(width: int, tabs: re.Match[str]) -> str:
    return tabs[0].expandtabs(width)


def reindent(code: str) -> str:
    """autopep8 on the indentation, which helps where that is what Python refuses, and only there."""
    return _autopep8(code, {"select": _INDENTATION}) if _is_indented_wrongly(code) else code


def reformat(code: str) -> str:
    """autopep8 at its most aggressive, on the indentation and stray semicolons: nothing else of it makes code parse."""
    return _autopep8(code, {"select": [*_INDENTATION, "E70"], "aggressive": 2}) if ";" in code else code


def _is_indented_wrongly(code: str) -> bool:
    try:
        ast.parse(code)
    except IndentationError:
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return False


def _autopep8(code: str, options: Mapping[str, object]) -> str:
    blanks = set("".join(margin[1] for margin in _MARGIN.finditer(code)))
    if len(code) > _MAX_REFORMATTED or len(blanks) > 1:  # of tabs among spaces it would guess the width
        return code
    try:
        return str(autopep8.fix_code(code, options={"pep8_passes": _MAX_PASSES, **options}))
    except Exception:  # noqa: BLE001 - it raises what its tokenizers raise
        return code
