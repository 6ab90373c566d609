"""Whether a program does nothing to the images that it reads, by its text alone.

    idleness("plt.imshow(image_clue_0)\\nplt.show()")                               # Idleness.SHOWS
    idleness("Image.open(image_path).save('a.png')\\nprint('a.png')")               # Idleness.SAVES
    idleness("Image.open(image_path).crop((0, 0, 9, 9)).save('a.png')")             # Idleness.CUTS
    idleness("Image.open(image_path).rotate(90).save('a.png')")                     # None

Told by the names that are called: a program is idle when it calls nothing but what reads, shows, saves and writes text.
What is not known counts as work, as does anything that an earlier round left behind, so that no work is called idle.
"""

from __future__ import annotations

import ast
import builtins
import re
from enum import Enum, auto

from pipelines.syntax import parsed


class Idleness(Enum):
    """What an idle program does with an image."""

    SHOWS = auto()
    """It shows the question's image as it is."""
    SAVES = auto()
    """It reads an image and saves it as it is."""
    NOTES = auto()
    """It writes words on an empty picture."""
    CUTS = auto()
    """It cuts a part and does nothing else: idle where the part is the whole, which the text doesn't say."""


_READS = frozenset({"open", "imread"})
_SHOWS = frozenset({"imshow", "show", "display"})
_SAVES = frozenset({"save", "imwrite", "savefig"})
_CUTS = frozenset({"crop", "crop_image_normalized"})
_BLANKS = frozenset({"new", "zeros", "ones", "full"})
_WRITES = frozenset({"text", "multiline_text", "putText", "Draw", "truetype", "load_default", "textbbox", "textlength"})
_PIXELS = frozenset({"copy", "load", "seek", "convert", "cvtColor", "array", "asarray", "fromarray", "close"})
_FRAMES = frozenset(
    {"figure", "subplots", "add_subplot", "subplots_adjust", "tight_layout", "gcf", "gca", "axis", "axes"}
)
_LABELS = frozenset({"set_axis_off", "title", "set_title", "suptitle", "xticks", "yticks"})
_TEXTS = frozenset({"format", "join", "split", "strip", "time", "uuid4"})
_PATHS = frozenset({"basename", "dirname", "splitext", "exists", "makedirs", "getsize", "getcwd", "listdir"})
_KEEPS = _PIXELS | _FRAMES | _LABELS | _TEXTS | _PATHS
"""Calls that leave the picture what it is."""
_RECOLOURS = re.compile(r"2(?:GRAY|HSV|HLS|LAB|Lab|YUV|YCrCb|LUV|XYZ)")
_SAME_MODES = frozenset({"RGB", "RGBA"})
_INPUT = re.compile(r"image_(?:path|clue)(?:_\d+)?|crop_image_normalized")
_SIZE = re.compile(r"image_size(?:_\d+)?")
_GIVEN = frozenset({"np", "cv2", "plt", "Image", "math", "re", "json", "os", "random", "display", *dir(builtins)})
_DOES = frozenset({"getattr", "setattr", "exec", "eval", "compile", "__import__", "map", "filter"})
"""Builtins behind which anything may be."""


def idleness(code: str) -> Idleness | None:
    """What an idle program does; None for one that works, that does not parse, or that nobody can tell of."""
    tree = parsed(code)
    if tree is None:
        return None
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    inputs = {name for name in names if _INPUT.fullmatch(name)}
    called = _called(nodes) - _defined(nodes)
    unknown = names - inputs - _GIVEN - _bound(nodes)
    if not all(map(_SIZE.fullmatch, unknown)) or names & _DOES:
        return None  # an earlier round's, or hidden
    if called & _BLANKS and called & _WRITES and not inputs and not called & _READS:
        return Idleness.NOTES if not _beyond(called, _KEEPS | _SHOWS | _SAVES | _BLANKS | _WRITES) else None
    if _beyond(called, _KEEPS | _READS | _SHOWS | _SAVES | _CUTS) or any(map(_works, nodes)):
        return None
    if called & _CUTS or any(map(_slices_pixels, nodes)):
        return Idleness.CUTS if inputs and not _computes_pixels(called, nodes) else None
    if any(isinstance(node, ast.BinOp | ast.AugAssign) and not _is_text(node) for node in nodes):
        return None
    if called & _SAVES and (called & _READS or inputs):
        return Idleness.SAVES
    return Idleness.SHOWS if called & _SHOWS and inputs else None


def _called(nodes: list[ast.AST]) -> set[str]:
    return {_name(node.func) for node in nodes if isinstance(node, ast.Call)}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else "?"


def _beyond(called: set[str], harmless: frozenset[str]) -> set[str]:
    return called - harmless - frozenset(dir(builtins))


def _defined(nodes: list[ast.AST]) -> set[str]:
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def _bound(nodes: list[ast.AST]) -> set[str]:
    """Names that the program itself gives a value."""
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    bound |= {alias.asname or alias.name.partition(".")[0] for alias in _imports(nodes)}
    return bound | _defined(nodes)


def _imports(nodes: list[ast.AST]) -> list[ast.alias]:
    return [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]


def _works(node: ast.AST) -> bool:
    """Whether pixels are written in place, colours are changed, or the axes show a part."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return bool(_RECOLOURS.search(node.attr))
    if not isinstance(node, ast.Call):
        return False
    given = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
    match _name(node.func):
        case "convert":
            return not _SAME_MODES.issuperset(given)
        case "axis":
            return not all(isinstance(word, str) for word in given)
        case "imread":
            return len(given) > 1
    return any(word.arg == "cmap" for word in node.keywords)


def _slices_pixels(node: ast.AST) -> bool:
    """``image[y1:y2, x1:x2]``."""
    is_pair = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    return is_pair and any(isinstance(part, ast.Slice) for part in ast.walk(node))


def _computes_pixels(called: set[str], nodes: list[ast.AST]) -> bool:
    """Whether numbers are computed where pixels are numbers: with Pillow alone they are coordinates."""
    has_arrays = bool(called & {"imread", "array", "asarray", "fromarray"})
    return has_arrays and any(isinstance(node, ast.BinOp | ast.AugAssign | ast.Compare) for node in nodes)


def _is_text(node: ast.AST) -> bool:
    """``"crop" + ".png"`` and ``"%d" % n``."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return any(isinstance(side, ast.JoinedStr) or _is_string(side) for side in sides)


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
