"""Redlines: misuse of tools that is told by rules, without a judge (CodeV §4.3, "Redlines" and the section after it).

    found = redlines(rollout.rounds, rollout_images)          # ((), (Redline.WHOLE_IMAGE,), …), one tuple per round
    scores = tool_scores(found, judged=[1.0, None, 0.5])      # (1.0, -0.5, 0.5), for rewards.tapo

CodeV names invalid coordinates, repeated crops that change nothing, reading and saving images as a scratchpad, and
errors of the sandbox that could have been avoided, and gives no rule and no number for any. The rules here are strict:
what they cannot tell is no redline. A crop that is merely large, or shows the wrong thing, is for the judge to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from enum import StrEnum

from pipelines.records import ImageRef, Observation, Round
from pipelines.syntax import parsed
from train.judging.idle import Idleness, idleness

SLACK_PIXELS = 2
"""A side that lies so far outside an image, or a crop that lacks so much of it, comes from rounding."""


class Redline(StrEnum):
    """What a round did wrong."""

    INVALID_COORDINATES = "invalid_coordinates"
    """A box outside its image, without area, or with its corners swapped; the sandbox moved it, or refused it."""
    WHOLE_IMAGE = "whole_image"
    """It shows the question's image as it is, or a "crop" that is all of it."""
    SAME_PICTURE = "same_picture"
    """It shows pictures, and every one of them was shown before, the question's included."""
    SCRATCHPAD = "scratchpad"
    """It reads an image and saves it as it is, or writes words on an empty picture."""
    SAME_ERROR = "same_error"
    """It fails by the program, or with the error, by which an earlier round failed."""
    NO_PYTHON = "no_python"
    """It does not parse."""
    FORBIDDEN = "forbidden"
    """It asked for what the sandbox never allows: deleting or moving files, starting programs."""


def redlines(rounds: Sequence[Round], images: Sequence[ImageRef]) -> tuple[tuple[Redline, ...], ...]:
    """The redlines of every round of one rollout, most rounds having none; ``images`` are the question's.

    Pictures are the same when their digests are: both sides must have been digested in one way.
    """
    shown = {image.sha256 for image in images}
    failures: set[str] = set()
    found = []
    for turn in rounds:
        seen = turn.observation
        found.append(tuple(_of_pictures(turn, images, shown)) + tuple(_of_errors(turn, failures)))
        shown |= {image.sha256 for image in seen.images}
        if seen.status != "ok":
            failures |= _failure(turn)
    return tuple(found)


def tool_scores(
    found: Sequence[Sequence[Redline]], judged: Sequence[float | None] = (), *, redline: float = -0.5
) -> tuple[float, ...]:
    """The tool score ``r_t`` of every round, for CodeV's eq. 6: a redline's, else the judge's, else 0.

    ``judged`` has a score per round, None where nobody was asked, or is empty. CodeV says of a redline that its score
    is negative, and not how much: -0.5 costs half of what a clear crop earns. Raises ``ValueError`` for one that is not
    negative, and for scores of another number of rounds.
    """
    if redline >= 0:
        raise ValueError(f"a redline's score is negative; found {redline}")
    if judged and len(judged) != len(found):
        raise ValueError(f"expected a judge's score, or None, for each of {len(found)} rounds; found {len(judged)}")
    pairs = zip(found, judged or [None] * len(found), strict=True)
    return tuple(redline if crossed else score or 0.0 for crossed, score in pairs)


def _of_pictures(turn: Round, images: Sequence[ImageRef], shown: set[str]) -> list[Redline]:
    seen, idle = turn.observation, idleness(turn.code)
    found = [Redline.INVALID_COORDINATES] if _misses_its_image(seen) else []
    if seen.status != "ok":
        return found
    if idle in (Idleness.SAVES, Idleness.NOTES):
        found.append(Redline.SCRATCHPAD)
    elif seen.images and (idle is Idleness.SHOWS or (idle is Idleness.CUTS and _are_whole(seen.images, images))):
        found.append(Redline.WHOLE_IMAGE)
    elif seen.images and shown.issuperset(image.sha256 for image in seen.images):
        found.append(Redline.SAME_PICTURE)
    return found


def _of_errors(turn: Round, failures: set[str]) -> list[Redline]:
    seen = turn.observation
    if seen.status == "ok":
        return []
    if _failure(turn) & failures:
        return [Redline.SAME_ERROR]
    if seen.status == "blocked":
        return [Redline.FORBIDDEN]
    return [Redline.NO_PYTHON] if _SYNTAX.match(seen.error or "") else []


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
"""How the sandbox, the crop tool and Pillow refuse a box."""


def _misses_its_image(seen: Observation) -> bool:
    moved = [edit for edit in seen.edits if edit.kind == "clamp_box" and edit.before]
    return any(_is_far(edit.before, edit.after) for edit in moved) or bool(_REFUSED.match(seen.error or ""))


def _is_far(before: str, after: str) -> bool:
    """Whether the sandbox moved a side of a box by more than rounding does."""
    given, used = ([float(number) for number in _NUMBER.findall(text)] for text in (before, after))
    return len(given) != len(used) or any(abs(a - b) > SLACK_PIXELS for a, b in zip(given, used, strict=True))


def _are_whole(shown: Sequence[ImageRef], images: Sequence[ImageRef]) -> bool:
    return all(any(_is_as_large(one, image) for image in images) for one in shown)


def _is_as_large(one: ImageRef, image: ImageRef) -> bool:
    return abs(one.width - image.width) <= SLACK_PIXELS and abs(one.height - image.height) <= SLACK_PIXELS


def _failure(turn: Round) -> set[str]:
    """What a later failure is compared with: the program, whatever its comments and blanks, and what it raised.

    A limit that was reached says nothing of the program, so it is no error that another one repeats.
    """
    seen, tree = turn.observation, parsed(turn.code)
    program = "program " + (" ".join(turn.code.split()) if tree is None else ast.dump(tree))
    raised = _PLACE.sub("", seen.error or "").strip() if seen.status == "error" else ""
    return {program, f"error {raised}"} if raised else {program}
