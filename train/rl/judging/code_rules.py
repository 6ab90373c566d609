"""Rules about code that need no judge: redlines, CodeV's word for misuse of tools, and the measured lines of an output.

    found = redlines(rollout.rounds, rollout_images)          # ((), (Redline.WHOLE_IMAGE,), …), one tuple per round
    scores = tool_scores(found, judged=[1.0, None, 0.5])      # (1.0, -0.5, 0.5), for rewards.tapo

CodeV (§4.3, "Redlines" and the section after it) names invalid coordinates, repeated crops that change nothing, reading
and saving images as a scratchpad, and errors of the sandbox that could have been avoided, and gives no rule and no
number for any. The rules here are strict: an undecidable round has no redline. A crop that is too large, or of the
wrong thing, is for the judge.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from enum import Enum, StrEnum, auto
from pathlib import Path

import yaml

from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.records import ImageRef, Observation, Round


class NoopKind(Enum):
    """An effect-free use of an image."""

    SHOWS = auto()
    """It shows the question's image as it is."""
    SAVES = auto()
    """It reads an image and saves it as it is."""
    NOTES = auto()
    """It writes words on an empty image."""
    CUTS = auto()
    """It crops and does nothing else: a no-op where the crop is the whole image, which the text does not show."""


_CALLS = {
    kind: frozenset(names.split())
    for kind, names in yaml.safe_load(Path(__file__).with_name("noop_calls.yaml").read_text()).items()
}
_READS, _SHOWS, _SAVES, _CUTS = (_CALLS[kind] for kind in ("reads", "shows", "saves", "cuts"))
_BUILTINS = frozenset(dir(builtins))
_RECOLOURS = re.compile(r"2(?:GRAY|HSV|HLS|LAB|Lab|YUV|YCrCb|LUV|XYZ)")
_SAME_MODES = frozenset({"RGB", "RGBA"})
_INPUT = re.compile(r"image_(?:path|clue)(?:_\d+)?|crop_image_normalized")
_SIZE = re.compile(r"image_size(?:_\d+)?")
_GIVEN = _BUILTINS | {"np", "cv2", "plt", "Image", "math", "re", "json", "os", "random", "display"}


def noop_kind(code: str) -> NoopKind | None:
    """Classify code that changes nothing in its images; None if it does, does not parse, or cannot be decided.

    The text alone decides: unknown calls count as work, as does anything from an earlier round.

        noop_kind("plt.imshow(image_clue_0)\\nplt.show()")                       # NoopKind.SHOWS
        noop_kind("Image.open(image_path).crop((0, 0, 9, 9)).save('a.png')")     # NoopKind.CUTS
        noop_kind("Image.open(image_path).rotate(90).save('a.png')")             # None
    """
    tree = parsed(code)
    if tree is None:
        return None
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    inputs = {name for name in names if _INPUT.fullmatch(name)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    called = {_name(node.func) for node in nodes if isinstance(node, ast.Call)} - defined
    unknown = names - inputs - _GIVEN - _assigned(nodes) - defined
    if not all(map(_SIZE.fullmatch, unknown)) or names & _CALLS["hides"]:
        return None  # an earlier round's, or hidden
    idle = _BUILTINS | _CALLS["keeps"] | _SHOWS | _SAVES
    if called & _CALLS["blanks"] and called & _CALLS["writes"] and not inputs and not called & _READS:
        return NoopKind.NOTES if called <= idle | _CALLS["blanks"] | _CALLS["writes"] else None
    if not called <= idle | _READS | _CUTS or any(map(_works, nodes)):
        return None
    if called & _CUTS or any(map(_slices_pixels, nodes)):
        return NoopKind.CUTS if inputs and not _computes_pixels(called, nodes) else None
    if any(isinstance(node, ast.BinOp | ast.AugAssign) and not _is_text(node) for node in nodes):
        return None
    if called & _SAVES and (called & _READS or inputs):
        return NoopKind.SAVES
    return NoopKind.SHOWS if called & _SHOWS and inputs else None


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else "?"


def _assigned(nodes: list[ast.AST]) -> set[str]:
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    imports = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return names | {alias.asname or alias.name.partition(".")[0] for alias in imports}


def _works(node: ast.AST) -> bool:
    """True if pixels are written in place, colours are changed, or the axes show a part."""
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
    """True if numbers are computed where pixels are numbers: with Pillow alone they are coordinates."""
    has_arrays = bool(called & {"imread", "array", "asarray", "fromarray"})
    return has_arrays and any(isinstance(node, ast.BinOp | ast.AugAssign | ast.Compare) for node in nodes)


def _is_text(node: ast.AST) -> bool:
    """``"crop" + ".png"`` and ``"%d" % n``."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


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
    """Find the redlines of every round; ``images`` are the question's, digested as those of the rounds."""
    known_digests = {image.sha256 for image in images}
    failures: set[str] = set()
    by_round = []
    for turn in rounds:
        by_round.append(tuple(_crossed(turn, images, known_digests, failures)))
        known_digests |= {image.sha256 for image in turn.observation.images}
        if turn.observation.status != "ok":
            failures |= _failure(turn)
    return tuple(by_round)


_REDLINE_SCORE = -0.5
"""CodeV wants a negative one, without a number: this costs half of what a clear crop earns."""


def tool_scores(
    crossed_by_round: Sequence[Sequence[Redline]], judged: Sequence[float | None] = ()
) -> tuple[float, ...]:
    """The tool score ``r_t`` of every round, for CodeV's eq. 6: a redline's, else the judge's, else 0. ``judged`` has a
    score or None per round, or is empty. Raises ``ValueError`` for scores of another number of rounds."""
    n_rounds = len(crossed_by_round)
    if judged and len(judged) != n_rounds:
        raise ValueError(f"expected a judge's score, or None, for each of {n_rounds} rounds; found {len(judged)}")
    pairs = zip(crossed_by_round, judged or [None] * n_rounds, strict=True)
    return tuple(_REDLINE_SCORE if crossed else score or 0.0 for crossed, score in pairs)


def _crossed(turn: Round, images: Sequence[ImageRef], known_digests: set[str], failures: set[str]) -> list[Redline]:
    observation, idle = turn.observation, noop_kind(turn.code)
    crossed = [Redline.INVALID_COORDINATES] if _misses_its_image(observation) else []
    if observation.status != "ok" and _failure(turn) & failures:
        return [*crossed, Redline.SAME_ERROR]
    if observation.status == "blocked":
        return [*crossed, Redline.FORBIDDEN]
    if observation.status != "ok":
        return [*crossed, Redline.NO_PYTHON] if _SYNTAX.match(observation.error or "") else crossed
    if idle in (NoopKind.SAVES, NoopKind.NOTES):
        return [*crossed, Redline.SCRATCHPAD]
    if not observation.images:
        return crossed
    are_whole = (_is_whole(crop, images) for crop in observation.images)
    if idle is NoopKind.SHOWS or (idle is NoopKind.CUTS and all(are_whole)):
        return [*crossed, Redline.WHOLE_IMAGE]
    was_shown = known_digests.issuperset(image.sha256 for image in observation.images)
    return [*crossed, Redline.SAME_IMAGE] if was_shown else crossed


_SYNTAX = re.compile(r"(?:Syntax|Indentation|Tab)Error\b")
_PLACE = re.compile(r"\(line \d+.*\Z", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_REJECTIONS = yaml.safe_load(Path(__file__).with_name("rejected_boxes.yaml").read_text(encoding="utf-8"))
_REFUSED = re.compile(rf"\AValueError: (?:{'|'.join(_REJECTIONS)})", re.DOTALL)


def _misses_its_image(observation: Observation) -> bool:
    """True if the sandbox rejected a box, or moved a side of one by more than rounding does."""
    for edit in observation.edits:
        if edit.kind == "clamp_box" and edit.before:
            requested, used = ([float(n) for n in _NUMBER.findall(text)] for text in (edit.before, edit.after))
            pairs = zip(requested, used, strict=False)
            if len(requested) != len(used) or any(abs(a - b) > SLACK_PIXELS for a, b in pairs):
                return True
    return bool(_REFUSED.match(observation.error or ""))


def _is_whole(crop: ImageRef, images: Sequence[ImageRef]) -> bool:
    """True if the crop is as large as one of the question's images, but for rounding, or has a border around any."""
    excess = [(crop.width - image.width, crop.height - image.height) for image in images]
    if excess and min(map(min, excess)) >= -SLACK_PIXELS:
        return True
    return any(abs(width) <= SLACK_PIXELS and abs(height) <= SLACK_PIXELS for width, height in excess)


def _failure(turn: Round) -> set[str]:
    """The code without comments and blanks, and its error; a reached limit is no error of the code."""
    observation, tree = turn.observation, parsed(turn.code)
    program = "program " + (" ".join(turn.code.split()) if tree is None else ast.dump(tree))
    raised = _PLACE.sub("", observation.error or "").strip() if observation.status == "error" else ""
    return {program, f"error {raised}"} if raised else {program}


_WORD = re.compile(r"\w+")


def measured_lines(code: str, output: str) -> str:
    """Select the lines of ``output`` with a word or number that no literal of ``code`` has; empty where there is none.
    Others were written, not measured (``print("It is red")``): CodeV's judge sees no text of the model's own (§4.3).
    Words that are put together from pieces or character codes pass; the judge's rules are for those."""
    tree = parsed(code)
    if tree is None:
        return ""
    literals = (str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    own_words = {word for literal in literals for word in _WORD.findall(literal)}
    return "\n".join(line for line in output.splitlines() if not own_words.issuperset(_WORD.findall(line)))
