"""Kinds of tools in a code round, from its syntax tree and its observation.

The kinds are those of PyVision-RL's figures 21, 23 and 25 as far as rules can separate them. A round may be of several
kinds. ``no_op`` only shows an image unchanged: that paper excludes such code from its figure 21 and finds a large
portion of it (figure 25, appendix D.3), so it is a kind of its own here. Code that does not parse is ``other``.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum

from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.records import Observation
from darkroom.pipelines.verification.grading.word_lists import read_words


class Tool(StrEnum):
    """Kinds of tools, in the order in which tables show them."""

    CROP = "crop"
    ROTATE = "rotate"
    CONTRAST = "contrast"
    SEGMENTATION = "segmentation"
    MARKS = "marks"
    PLOT = "plot"
    COMPUTE = "compute"
    FRAMES = "frames"
    NO_OP = "no_op"
    OTHER = "other"


_DATA = read_words(__file__)
_CALLS = {Tool(kind): frozenset(names) for kind, names in _DATA["calls"].items()}
_DRAWING, _NUMBERS, _PIXELS, _SHOWS, _CHANGES = (
    frozenset(_DATA[name]) for name in ("drawing", "numbers", "pixels", "shows", "changes")
)
_BUILT_IN = frozenset({"filter"})
_TURNS = re.compile(r"ROTATE|FLIP|TRANSPOSE|TRANSVERSE")
_VIDEO = re.compile(r"video_(?:clue|path)")
_IMAGE = re.compile(r"image|img|pic|photo", re.IGNORECASE)


def tools_of(code: str, observation: Observation, *, untouched: bool = False) -> frozenset[Tool]:
    """The kinds of ``code`` with ``observation``; at least one.

    ``untouched``: every observed image is an unchanged one of the question, measured on pixels (``images.py``):
    then nothing was cropped, rotated or enhanced, whatever the code calls.
    """
    tree = parsed(code)
    if tree is None:
        return frozenset({Tool.OTHER})
    nodes = list(ast.walk(tree))
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = {function.attr for function in functions if isinstance(function, ast.Attribute)}
    calls = methods | {function.id for function in functions if isinstance(function, ast.Name)}
    kinds = _implied(nodes, calls, methods) - ({Tool.CROP, Tool.ROTATE, Tool.CONTRAST} if untouched else set())
    if kinds:
        return frozenset(kinds)
    if observation.images and (untouched or (calls & _SHOWS and not calls & _CHANGES)):
        return frozenset({Tool.NO_OP})
    reckons = any(isinstance(node, ast.BinOp | ast.For | ast.While | ast.comprehension) for node in nodes)
    return frozenset({Tool.COMPUTE if reckons and observation.text.strip() and not observation.images else Tool.OTHER})


def _implied(nodes: Sequence[ast.AST], calls: AbstractSet[str], methods: AbstractSet[str]) -> set[Tool]:
    """The kinds that calls, names and slices imply."""
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    # ``filter`` is also a built-in of Python: it counts as a method only
    kinds = {tool for tool, known in _CALLS.items() if calls & (known - _BUILT_IN) | methods & known}
    if calls & _DRAWING:
        kinds.add(Tool.PLOT)
    if Tool.PLOT in kinds and "imshow" in calls:
        kinds = (kinds - {Tool.PLOT}) | {Tool.MARKS}
    reads_pixels = bool(calls & _PIXELS) or any(map(_IMAGE.search, names))
    rules = {
        Tool.CROP: reads_pixels and any(map(_cuts, nodes)),
        Tool.ROTATE: "transpose" in calls and any(map(_TURNS.search, names)),
        Tool.FRAMES: any(map(_VIDEO.search, names)),
        Tool.CONTRAST: reads_pixels and any(map(_stretches, nodes)),
        Tool.COMPUTE: not _NUMBERS.isdisjoint(_modules(nodes)),
    }
    return kinds | {tool for tool, is_so in rules.items() if is_so}


def _modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _cuts(node: ast.AST) -> bool:
    """``image[y1:y2, x1:x2]``; a slice without ends (``image[:, :, 0]``) cuts nothing off."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return False
    sides = node.slice.elts[:2]
    return len(sides) == 2 and all(isinstance(side, ast.Slice) and (side.lower or side.upper) for side in sides)


def _stretches(node: ast.AST) -> bool:
    """``np.clip(image * 1.5, 0, 255)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "clip":
        return False
    return [arg.value for arg in node.args if isinstance(arg, ast.Constant)][-2:] == [0, 255]
