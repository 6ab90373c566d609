"""Redlines: misuse of tools, found by rules without a judge (CodeV §4.3, "Redlines" and the section after it).

    found = redlines(rollout.rounds, rollout_images)          # ((), (Redline.WHOLE_IMAGE,), …), one tuple per round
    scores = tool_scores(found, judged=[1.0, None, 0.5])      # (1.0, -0.5, 0.5), for rewards.tapo

CodeV names invalid coordinates, repeated crops that change nothing, reading and saving images as a scratchpad, and
errors of the sandbox that could have been avoided, and gives no rule and no number for any. The rules here are strict:
what they cannot decide is no redline. Whether a crop is too large, or of the wrong thing, is for the judge.

``noop_kind`` finds code that does nothing to the images that it reads, from its text alone: code that calls nothing but
what reads, shows, saves and writes text. Unknown calls count as work, as does anything from an earlier round.

    noop_kind("plt.imshow(image_clue_0)\\nplt.show()")                               # NoopKind.SHOWS
    noop_kind("Image.open(image_path).save('a.png')\\nprint('a.png')")               # NoopKind.SAVES
    noop_kind("Image.open(image_path).crop((0, 0, 9, 9)).save('a.png')")             # NoopKind.CUTS
    noop_kind("Image.open(image_path).rotate(90).save('a.png')")                     # None
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from enum import Enum, StrEnum, auto

from pipelines.models.parsing import parsed
from pipelines.records import ImageRef, Observation, Round


class NoopKind(Enum):
    """What code without effect does with an image."""

    SHOWS = auto()
    """It shows the question's image as it is."""
    SAVES = auto()
    """It reads an image and saves it as it is."""
    NOTES = auto()
    """It writes words on an empty image."""
    CUTS = auto()
    """It crops and does nothing else: a no-op where the crop is the whole image, which the text does not show."""


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
"""Calls that do not change the image."""
_RECOLOURS = re.compile(r"2(?:GRAY|HSV|HLS|LAB|Lab|YUV|YCrCb|LUV|XYZ)")
_SAME_MODES = frozenset({"RGB", "RGBA"})
_INPUT = re.compile(r"image_(?:path|clue)(?:_\d+)?|crop_image_normalized")
_SIZE = re.compile(r"image_size(?:_\d+)?")
_GIVEN = frozenset({"np", "cv2", "plt", "Image", "math", "re", "json", "os", "random", "display", *dir(builtins)})
_DOES = frozenset({"getattr", "setattr", "exec", "eval", "compile", "__import__", "map", "filter"})
"""Builtins that may call anything."""


def noop_kind(code: str) -> NoopKind | None:
    """The kind of a no-op; None for code that works, does not parse, or cannot be decided."""
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
        return NoopKind.NOTES if not _beyond(called, _KEEPS | _SHOWS | _SAVES | _BLANKS | _WRITES) else None
    if _beyond(called, _KEEPS | _READS | _SHOWS | _SAVES | _CUTS) or any(map(_works, nodes)):
        return None
    if called & _CUTS or any(map(_slices_pixels, nodes)):
        return NoopKind.CUTS if inputs and not _computes_pixels(called, nodes) else None
    if any(isinstance(node, ast.BinOp | ast.AugAssign) and not _is_text(node) for node in nodes):
        return None
    if called & _SAVES and (called & _READS or inputs):
        return NoopKind.SAVES
    return NoopKind.SHOWS if called & _SHOWS and inputs else None


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
    """Names that the code itself assigns."""
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    imports = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    bound |= {alias.asname or alias.name.partition(".")[0] for alias in imports}
    return bound | _defined(nodes)


def _works(node: ast.AST) -> bool:
    """Whether pixels are written in place, colours are changed, or the axes show a part."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        return bool(_RECOLOURS.search(node.attr))
    if not isinstance(node, ast.Call):
        return False
    arguments = [argument.value if isinstance(argument, ast.Constant) else None for argument in node.args]
    match _name(node.func):
        case "convert":
            return not _SAME_MODES.issuperset(arguments)
        case "axis":
            return not all(isinstance(word, str) for word in arguments)
        case "imread":
            return len(arguments) > 1
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


SLACK_PIXELS = 2
"""A side that lies so far outside an image, or a crop that lacks so much of it, comes from rounding."""


class Redline(StrEnum):
    """The misuse of a round."""

    INVALID_COORDINATES = "invalid_coordinates"
    """A box outside its image, without area, or with swapped corners: the sandbox moved or rejected it."""
    WHOLE_IMAGE = "whole_image"
    """It shows the question's image as it is, or a "crop" that is all of it."""
    SAME_IMAGE = "same_picture"
    """It shows images, and every one of them was shown before, the question's included."""
    SCRATCHPAD = "scratchpad"
    """It reads an image and saves it as it is, or writes words on an empty image."""
    SAME_ERROR = "same_error"
    """It fails with the code or the error of an earlier failed round."""
    NO_PYTHON = "no_python"
    """It does not parse."""
    FORBIDDEN = "forbidden"
    """It called what the sandbox never allows: deleting or moving files, starting processes."""


def redlines(rounds: Sequence[Round], images: Sequence[ImageRef]) -> tuple[tuple[Redline, ...], ...]:
    """The redlines of every round of one rollout, most rounds having none; ``images`` are the question's.

    Images are the same when their digests are: both sides must have been digested in one way.
    """
    known_digests = {image.sha256 for image in images}
    failures: set[str] = set()
    by_round = []
    for turn in rounds:
        observation = turn.observation
        by_round.append(tuple(_of_images(turn, images, known_digests)) + tuple(_of_errors(turn, failures)))
        known_digests |= {image.sha256 for image in observation.images}
        if observation.status != "ok":
            failures |= _failure(turn)
    return tuple(by_round)


def tool_scores(
    crossed_by_round: Sequence[Sequence[Redline]], judged: Sequence[float | None] = (), *, redline: float = -0.5
) -> tuple[float, ...]:
    """The tool score ``r_t`` of every round, for CodeV's eq. 6: a redline's, else the judge's, else 0.

    ``judged`` has a score per round, None without one, or is empty. CodeV says of a redline that its score
    is negative, and not how much: -0.5 costs half of what a clear crop earns. Raises ``ValueError`` for one that is not
    negative, and for scores of another number of rounds.
    """
    if redline >= 0:
        raise ValueError(f"a redline's score is negative; found {redline}")
    if judged and len(judged) != len(crossed_by_round):
        raise ValueError(
            f"expected a judge's score, or None, for each of {len(crossed_by_round)} rounds; found {len(judged)}"
        )
    pairs = zip(crossed_by_round, judged or [None] * len(crossed_by_round), strict=True)
    return tuple(redline if crossed else score or 0.0 for crossed, score in pairs)


def _of_images(turn: Round, images: Sequence[ImageRef], known_digests: set[str]) -> list[Redline]:
    observation, idle = turn.observation, noop_kind(turn.code)
    crossed = [Redline.INVALID_COORDINATES] if _misses_its_image(observation) else []
    if observation.status != "ok":
        return crossed
    if idle in (NoopKind.SAVES, NoopKind.NOTES):
        crossed.append(Redline.SCRATCHPAD)
    elif observation.images and (
        idle is NoopKind.SHOWS or (idle is NoopKind.CUTS and _are_whole(observation.images, images))
    ):
        crossed.append(Redline.WHOLE_IMAGE)
    elif observation.images and known_digests.issuperset(image.sha256 for image in observation.images):
        crossed.append(Redline.SAME_IMAGE)
    return crossed


def _of_errors(turn: Round, failures: set[str]) -> list[Redline]:
    observation = turn.observation
    if observation.status == "ok":
        return []
    if _failure(turn) & failures:
        return [Redline.SAME_ERROR]
    if observation.status == "blocked":
        return [Redline.FORBIDDEN]
    return [Redline.NO_PYTHON] if _SYNTAX.match(observation.error or "") else []


_SYNTAX = re.compile(r"(?:Syntax|Indentation|Tab)Error\b")
_PLACE = re.compile(r"\(line \d+.*\Z", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_REFUSED = re.compile(
    r"\AValueError: (?:"
    r"(?:crop|resize) box .* (?:is outside|has no area in|has a side that is not a number, in) the image"
    r"|slice \[.* (?:is outside|has no area in) the image"
    r"|bbox_2d .*(?:every side lies between|must be less than|it covers no pixel)"
    r"|target_image .*there (?:are images|is no image)"
    r"|Coordinate '(?:right|lower)' is less than"
    r")",
    re.DOTALL,
)
"""How the sandbox, the crop tool and Pillow reject a box."""


def _misses_its_image(observation: Observation) -> bool:
    moved = [edit for edit in observation.edits if edit.kind == "clamp_box" and edit.before]
    return any(_is_far(edit.before, edit.after) for edit in moved) or bool(_REFUSED.match(observation.error or ""))


def _is_far(before: str, after: str) -> bool:
    """Whether the sandbox moved a side of a box by more than rounding does."""
    requested, used = ([float(number) for number in _NUMBER.findall(text)] for text in (before, after))
    return len(requested) != len(used) or any(abs(a - b) > SLACK_PIXELS for a, b in zip(requested, used, strict=True))


def _are_whole(outputs: Sequence[ImageRef], images: Sequence[ImageRef]) -> bool:
    return all(any(_is_as_large(output, image) for image in images) for output in outputs)


def _is_as_large(output: ImageRef, image: ImageRef) -> bool:
    return abs(output.width - image.width) <= SLACK_PIXELS and abs(output.height - image.height) <= SLACK_PIXELS


def _failure(turn: Round) -> set[str]:
    """The keys of a failure, for comparison with later ones: the code without comments and blanks, and its error.

    A reached limit is no error of the code, so no later round repeats it.
    """
    observation, tree = turn.observation, parsed(turn.code)
    program = "program " + (" ".join(turn.code.split()) if tree is None else ast.dump(tree))
    raised = _PLACE.sub("", observation.error or "").strip() if observation.status == "error" else ""
    return {program, f"error {raised}"} if raised else {program}
