"""Checks on rollouts of two crops: the first as it was designed, the second explained by it. Measured on pixels.

That the second shows the target, and little else, is what ``checks/crop.py`` says of the last crop.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.checks.crop import SLACK_PIXELS
from pipelines.checks.shown import located

MIN_NARROWING = 1.5
"""A first crop is generous when it shows at least this many times the area of the second."""

MAX_FIRST_SHARE = 0.6
"""A first crop that shows more of the image than this has not looked closer at all."""

MAX_MISSED_SHARE = 0.3
"""A first crop that shows more of the target than this was not wrong."""

MAX_REPETITION = 0.9
"""Thoughts that are more alike than this say the same."""

_MIN_WORDS = 6
_PLANNED = re.compile(
    r"\b(?:on purpose|deliberate(?:ly)?|intentional(?:ly)?|as (?:told|instructed|asked|planned|requested)"
    r"|instruct(?:ed|ions?)|(?:i|we) (?:was|were|am|are) (?:told|given|asked)"
    r"|(?:second|exact|next|correct) region (?:is|was)"
    r"|worked example|ground[ -]?truth|the prompt)\b",
    re.IGNORECASE,
)


@check()
def two_programs(case: Case) -> Verdict:
    """There are exactly two programs; ``score`` is their number."""
    n = len(case.trajectory.rounds)
    if n == 2:
        return passed(score=2.0)
    return failed(Flaw.TOO_FEW_ROUNDS if n < 2 else Flaw.TOO_MANY_PROGRAMS, f"{n} programs, expected 2", score=float(n))


@check()
def first_crop_is_generous(case: Case) -> Verdict:
    """The first crop shows the whole target and clearly more than the second; ``score`` is the ratio of their areas."""
    first, second = (located(case, turn) for turn in case.trajectory.rounds[:2]) if _has_two(case) else (None, None)
    if first is None or second is None:
        which = "first" if first is None else "second"
        return failed(Flaw.NOT_A_CROP, f"the {which} image is no part of the question's image", score=0.0)
    image, target = case.trajectory.images[0], case.sample.truth.boxes[0].box
    share, narrowing = first.box.area / (image.width * image.height), first.box.area / second.box.area
    detail, score = f"{narrowing:.1f} times the second crop, {share:.1%} of the image", round(narrowing, 4)
    slack = SLACK_PIXELS + max(first.box.width, first.box.height) // 100
    if not first.box.contains(target, slack=slack):
        return failed(Flaw.TARGET_CUT, f"the first crop does not show the whole target; {detail}", score=score)
    if share > MAX_FIRST_SHARE:
        return failed(Flaw.CROP_TOO_LARGE, detail, score=score)
    if narrowing < MIN_NARROWING:
        return failed(Flaw.CROP_TOO_SMALL, detail, score=score)
    return passed(detail, score=score)


@check()
def first_crop_misses(case: Case) -> Verdict:
    """The first crop shows at most ``MAX_MISSED_SHARE`` of the target; ``score`` is the share that it shows."""
    rounds = case.trajectory.rounds
    found = located(case, rounds[0]) if rounds else None
    if found is None:
        return failed(Flaw.NOT_A_CROP, "the first image is no part of the question's image", score=0.0)
    target = case.sample.truth.boxes[0].box
    shown = round(found.box.intersection(target).area / target.area, 4)
    detail = f"the first crop shows {shown:.0%} of the target"
    if shown <= MAX_MISSED_SHARE:
        return passed(detail, score=shown)
    return failed(Flaw.TARGET_SHOWN_TOO_EARLY, detail, score=shown)


@check()
def second_round_is_explained(case: Case) -> Verdict:
    """The thought before the second program says something new, and nothing of a plan; ``score``: how new, 0..1."""
    if not _has_two(case):
        return failed(Flaw.NOT_EXPLAINED, "there is no second round", score=0.0)
    first, second = (turn.thought for turn in case.trajectory.rounds[:2])
    new = round(1 - SequenceMatcher(None, first.casefold(), second.casefold(), autojunk=False).ratio(), 4)
    if len(second.split()) < _MIN_WORDS:
        return failed(Flaw.NOT_EXPLAINED, f"nothing is said of the first result: {second!r}", score=0.0)
    if 1 - new > MAX_REPETITION:
        return failed(Flaw.NOT_EXPLAINED, "it repeats the thought of round 1", score=new)
    if told := _PLANNED.search(second):
        return failed(Flaw.HINT_MENTIONED, f"the thought of round 2 says {told[0]!r}", score=new)
    return passed(score=new)


def _has_two(case: Case) -> bool:
    return len(case.trajectory.rounds) >= 2
