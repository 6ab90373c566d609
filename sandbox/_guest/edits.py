"""The rewrites that help a small model over trivial mistakes (Thyme, appendix A), every one of them reported.

Code that compiles is never reformatted. Two rewrites touch code that compiles: the clamp of boxes (`clamp`) and, in the
lite tier, which has no file system of its own, the folders.
"""

import ast
import textwrap
from collections.abc import Callable, Mapping
from typing import NamedTuple

import autopep8

from sandbox._guest.clamp import BoxClamp


class SourceEdit(NamedTuple):
    kind: str
    before: str
    after: str


_INDENTATION_ONLY = ["E1", "W1", "E9", "W6"]


def parse_repaired(code: str, filename: str) -> tuple[ast.Module, list[SourceEdit]]:
    """The syntax tree of the code, after the first repair that makes it compile. Raises SyntaxError or ValueError."""
    try:
        return ast.parse(code, filename), []
    except (SyntaxError, ValueError) as error:
        original = error
    for kind, repair in _REPAIRS:
        try:
            repaired = repair(code)
            return ast.parse(repaired, filename), [SourceEdit(kind, code, repaired)]
        except (SyntaxError, ValueError):
            continue
    raise original


def clamp_boxes(tree: ast.Module, code: str, clamp: BoxClamp) -> list[SourceEdit]:
    clamped = clamp.apply(tree)
    return [SourceEdit("clamp_box", ast.get_source_segment(code, node) or "", after) for node, after in clamped]


def move_folders(tree: ast.Module, folders: Mapping[str, str]) -> list[SourceEdit]:
    """Point string literals below a folder (key) to where it really is (value), in place."""
    edits: list[SourceEdit] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            before, node.value = node.value, _moved(node.value, folders)
            if node.value != before:
                edits.append(SourceEdit("output_folder", repr(before), repr(node.value)))
    return edits


def _moved(path: str, folders: Mapping[str, str]) -> str:
    for folder, real in folders.items():
        if path == folder or path.startswith(f"{folder}/"):
            return real + path.removeprefix(folder)
    return path


def _dedent(code: str) -> str:
    return textwrap.dedent(code).strip("\n")


def _align_first_line(code: str) -> str:
    """A first line that lost its indentation, as happens when a code block is cut out of a text."""
    lines = code.splitlines()
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if len(filled) > 1:
        first, second = filled[0], filled[1]
        indentation = lines[second][: len(lines[second]) - len(lines[second].lstrip())]
        lines[first] = indentation + lines[first].lstrip()
    return textwrap.dedent("\n".join(lines))


def _reindent(code: str) -> str:
    return str(autopep8.fix_code(textwrap.dedent(code), options={"select": _INDENTATION_ONLY}))


def _reformat(code: str) -> str:
    return str(autopep8.fix_code(code, options={"aggressive": 2}))


_REPAIRS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("dedent", _dedent),
    ("align_first_line", _align_first_line),
    ("autopep8", _reindent),
    ("autopep8", _reformat),
)
