"""Checks on rotations, measured on the pixels that came back and not on the code's text."""

import ast
import re
import tokenize
from collections.abc import Iterator

from PIL import Image, ImageOps

from darkroom.pipelines.models.parsing import parsed
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.checks.hint import tokens
from darkroom.pipelines.vision.registration import degrees_between, pose_of

MAX_RESIDUAL = 3.0
"""Degrees by which an image may still lean."""

MIN_SHOWN = 0.4
"""Least share of the image that must be left. A square cut from a turned 3:2 image keeps about a half."""

_UNIT = r"(?:°|º|degrees?\b|degs?\b|rad(?:ian)?s?\b)"
_FIGURES = re.compile(rf"(?<!\d)(\d++(?:[.,]\d++)?+)\s*+-?+\s*+{_UNIT}", re.IGNORECASE)
_WORDS = re.compile(
    r"\b(?:(?:ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|one|two|three|four|five|six|seven|eight|nine"
    rf"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|and|a)[\s-]++)++({_UNIT})?",
    re.IGNORECASE,
)
"""Group 1 is missing where no unit follows: the words are skipped, not read again from each of them on."""
_NUMBER = re.compile(r"\d+")
_ORDINARY = re.compile(
    r"(?:u?int|float|complex|base|sha|utf-?)\d+|^rot90$|^(?-i:ROTATE_(?:90|180|270)(?:_(?:COUNTER)?CLOCKWISE)?)$",
    re.IGNORECASE,
)
"""Numbers that belong to a name: ``float32`` tells no angle, ``Image.ROTATE_180`` is the turn itself."""


@check()
def upright(case: Case) -> CheckResult:
    """The last image shown is the unrotated original, upright; ``score`` is how many degrees it still leans."""
    output = _output(case)
    if output is None:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    original = case.store.open(case.sample.images[0])
    pose = pose_of(original, output)
    if pose is None:
        what = "mirrored" if pose_of(ImageOps.mirror(original.convert("RGB")), output) else "not this question's"
        return failed(Flaw.NOT_UPRIGHT, f"the image shown is {what}")
    residual = degrees_between(pose.angle, 0.0)
    detail, score = f"{residual:+.1f} degrees from upright", round(abs(residual), 1)
    if abs(residual) > MAX_RESIDUAL:
        return failed(Flaw.NOT_UPRIGHT, detail, score=score)
    for what, box, least in _wanted(case, original):
        share = pose.share_shown(box)
        if share < least:
            return failed(Flaw.TARGET_CUT, f"upright, but shows {share:.0%} of {what}", score=score)
    return passed(detail, score=score)


@check()
def angle_undone(case: Case) -> CheckResult:
    """The program's turn and the one before it make a whole turn; ``score`` is the rest, in degrees."""
    output = _output(case)
    if output is None:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    pose = pose_of(case.store.open(case.trajectory.images[0]), output)
    if pose is None:
        return failed(Flaw.WRONG_ANGLE, "the image shown is no rotation of the one that was given")
    applied = float(case.hint["angle"])
    lacks = degrees_between(pose.angle + applied, 0.0)
    detail = f"turned by {pose.angle:.1f} degrees after {applied:g}: {lacks:+.1f} from a whole turn"
    return decided(abs(lacks) <= MAX_RESIDUAL, Flaw.WRONG_ANGLE, detail, score=round(abs(lacks), 1))


@check()
def angle_unspoken(case: Case) -> CheckResult:
    """No thought, comment, name or text in the code tells an angle, in figures or in words, nor does a file's name.

    What the question, its choices and its answer say may be said. In code, the two numbers that undo the turn may
    stand as numbers only.
    """
    public = " ".join([case.sample.question, *case.sample.choices, case.sample.answer]).casefold()
    for where, text in _prose(case):
        mentions = [match[0] for pattern in (_FIGURES, _WORDS) for match in pattern.finditer(text) if match[1]]
        if leaked := [words for words in mentions if words.casefold() not in public]:
            return failed(Flaw.HINT_NUMBER, f"{where} says {leaked[0]!r}")
    secret = _secrets(case)
    for where, text in _spelled(case):
        if leaked := sorted(secret.intersection(_NUMBER.findall(_ORDINARY.sub("", text)))):
            return failed(Flaw.HINT_NUMBER, f"{where} holds {leaked[0]}: {text[:60]!r}")
    return passed()


def _output(case: Case) -> Image.Image | None:
    images = [image for turn in case.trajectory.rounds for image in turn.observation.images]
    return case.store.open(images[-1]) if images else None


def _wanted(case: Case, original: Image.Image) -> Iterator[tuple[str, Box, float]]:
    yield "the picture", Box(0, 0, *original.size), MIN_SHOWN
    for target in case.sample.truth.boxes[:1]:
        if target.image == 0:
            yield "the target", target.box, 0.95


def _secrets(case: Case) -> set[str]:
    """The angle and what undoes it, as people write either: a turn the other way, and the rest of a whole one."""
    angle = round(float(case.hint["angle"])) % 360
    return {str(angle), str(360 - angle), str(360 + angle), str(720 - angle)}


def _prose(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        for token in tokens(turn.code):
            if token.type == tokenize.COMMENT:
                yield f"a comment of round {n}", token.string
    yield "the final thought", case.trajectory.final_thought


def _spelled(case: Case) -> Iterator[tuple[str, str]]:
    """Names and texts of the code, and what it printed: file names among them."""
    for n, turn in enumerate(case.trajectory.rounds, 1):
        for token in tokens(turn.code):
            if token.type == tokenize.NAME:
                yield f"a name in round {n}", token.string
        tree = parsed(turn.code)  # None for code that does not parse, which fails `executes`
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"a text in round {n}", node.value
        yield f"what round {n} printed", turn.observation.text
