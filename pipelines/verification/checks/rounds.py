"""Checks on the rounds of a trajectory: what ran, which calls of the crop tool were made, how the text reads.

Of crop calls (Look Less, Reason More, §4.1 and appendix B): how they are made, and what they show. Of the text that the
policy wrote (thoughts, code, the final thought and the answer): it does not go round in circles, and is not longer than
a model is trained on. Filler that never repeats itself within ``MAX_CHARS`` is not found: it is for a judge.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from darkroom.pipelines.models.protocols.tool_call import CROP, write_call
from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.geometry import box_from_fractions
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.checks.crop import PLAIN_LEVELS, containment, shows_pixels, tightness
from darkroom.pipelines.verification.repetition import MIN_CHARS, Repetition
from darkroom.pipelines.vision.crop_localization import locate_crop


@check()
def executes(case: Case) -> CheckResult:
    """Every program ran to its end."""
    if not case.trajectory.rounds:
        return failed(Flaw.NO_PROGRAM, "no program was written", score=0.0)
    return _all_ran(case, Flaw.PROGRAM_FAILED) or passed(score=1.0)


@check()
def shows_an_image(case: Case) -> CheckResult:
    """Every round's observation shows at least one image."""
    blind = [str(n) for n, turn in enumerate(case.trajectory.rounds, 1) if not turn.observation.images]
    is_shown = case.trajectory.rounds and not blind
    return passed() if is_shown else failed(Flaw.NO_IMAGE, f"no image in round {', '.join(blind) or '1'}")


@check()
def not_blank(case: Case) -> CheckResult:
    """The images that were shown last are not all plain; ``score``: the share of all images that are not."""
    shown = [turn.observation.images for turn in case.trajectory.rounds if turn.observation.images]
    has_something = [[_deviation(case, image) >= PLAIN_LEVELS for image in images] for images in shown]
    n, n_all = sum(map(sum, has_something)), sum(map(len, shown))
    if not n_all:
        return passed("no image was shown")
    detail = f"{n} of {n_all} images are not plain"
    return decided(any(has_something[-1]), Flaw.SHOWS_NOTHING, detail, score=round(n / n_all, 4))


def _deviation(case: Case, image: ImageRef) -> float:
    return float(np.asarray(case.store.open(image).convert("L")).std())


@check()
def no_program(case: Case) -> CheckResult:
    """No program was written; ``score`` is the number of programs."""
    n = len(case.trajectory.rounds)
    return failed(Flaw.HAS_PROGRAM, f"{n} programs in a row that needs none", score=n) if n else passed(score=0.0)


MIN_TOOL_TURNS = 2
"""What PyVision-RL's SFT data have at least (§3.4)."""


@check()
def has_tool_turns(case: Case) -> CheckResult:
    """At least ``MIN_TOOL_TURNS`` rounds printed or showed something; ``score`` is how many did."""
    n_turns = sum(bool(turn.observation.images or turn.observation.text.strip()) for turn in case.trajectory.rounds)
    detail = f"{n_turns} of {len(case.trajectory.rounds)} rounds printed or showed something"
    enough = n_turns >= MIN_TOOL_TURNS
    more = "" if enough else f", expected {MIN_TOOL_TURNS}"
    return decided(enough, Flaw.TOO_FEW_ROUNDS, detail + more, score=float(n_turns))


@check()
def no_round_is_broken(case: Case) -> CheckResult:
    """Every round's program ran to its end, where there is a round; ``score`` is the share that did."""
    return _all_ran(case, Flaw.BROKEN_ROUND) or passed(f"{len(case.trajectory.rounds)} rounds", score=1.0)


def _all_ran(case: Case, flaw: Flaw) -> CheckResult | None:
    """The failure of the rounds that did not run to their end; None where all did."""
    rounds = case.trajectory.rounds
    broken = [(n, turn.observation) for n, turn in enumerate(rounds, 1) if turn.observation.status != "ok"]
    if not broken:
        return None
    errors = (f"round {n}: {observation.status}: {observation.error or ''}".strip() for n, observation in broken)
    return failed(flaw, "; ".join(errors), score=1 - len(broken) / len(rounds))


@dataclass(frozen=True, slots=True)
class CropCall:
    """A call of the tool: ``sides`` are fractions, ``target`` counts images from 1, ``shown`` is what came back."""

    sides: tuple[float, ...]
    target: int
    shown: tuple[ImageRef, ...]


@check()
def calls_are_valid(case: Case) -> CheckResult:
    """Every round is a crop call whose box is ordered, lies in 0..1 and names an image that there was."""
    n_images = len(case.trajectory.images)
    for n, call in enumerate(_calls(case), 1):
        if call is None:
            return failed(Flaw.CALL_INVALID, f"round {n} is no call of {CROP}")
        if error := _error(call, n_images):
            return failed(Flaw.CALL_INVALID, f"round {n}: {error}")
        n_images += len(call.shown)
    return passed(f"{len(case.trajectory.rounds)} calls")


@check(version=2)
def zooms_on_target(case: Case) -> CheckResult:
    """The last call shows the target as the image has it, and is no lazy crop; ``score``: the share that it shows.
    A row without calls, or without a box, has nothing to show."""
    if not (calls := [call for call in _calls(case) if call is not None]) or not case.sample.truth.boxes:
        return passed("no call" if not calls else "the sample has no box")
    if not calls[-1].shown:
        return failed(Flaw.NOT_A_CROP, "the last call shows nothing", score=0.0)
    target = case.sample.truth.boxes[0]
    original = case.trajectory.images[target.image]
    image = case.store.open(calls[-1].shown[-1])
    # where to look first: pixels decide
    is_named = calls[-1].target == target.image + 1 and not _error(calls[-1], calls[-1].target)
    boxes = [box_from_fractions(calls[-1].sides, original.width, original.height)] if is_named else []
    location = locate_crop(image, case.store.open(original), boxes)
    contained, tight = containment(location, target.box), tightness(location, original)
    if location is None or contained.flaw or tight.flaw:
        return contained if contained.flaw else tight
    return shows_pixels(case, calls[-1].shown[-1], original, location.box, target.box) or contained


@check()
def mode_is_obeyed(case: Case) -> CheckResult:
    """Forced rows call, forbidden rows don't, free ones do what the row was chosen for; ``score`` counts calls."""
    n_calls, mode = len(case.trajectory.rounds), case.trajectory.mode
    chosen = case.hint.get("style")
    calls_wanted = mode == "forced" or (mode == "free" and chosen == "tool")
    none_wanted = mode == "forbidden" or (mode == "free" and chosen == "text")
    detail = f"{n_calls} calls in the mode {mode}" + (f", chosen for {chosen}" if mode == "free" and chosen else "")
    obeyed = not (calls_wanted and not n_calls) and not (none_wanted and n_calls)
    return decided(obeyed, Flaw.MODE_VIOLATED, detail, score=float(n_calls))


def _calls(case: Case) -> Iterator[CropCall | None]:
    """The call that each round's code is; None for any other program."""
    for turn in case.trajectory.rounds:
        call = json.loads(write_call(turn.code))
        if call["name"] != CROP:
            yield None
            continue
        arguments = call["arguments"]
        yield CropCall(tuple(arguments["bbox_2d"]), arguments["target_image"], turn.observation.images)


def _error(call: CropCall, n_images: int) -> str:
    x1, y1, x2, y2 = call.sides
    if not all(0 <= side <= 1 for side in call.sides):
        return f"the box {list(call.sides)} is not in 0..1"
    if x1 >= x2 or y1 >= y2:
        return f"the box {list(call.sides)} is not ordered"
    if not 1 <= call.target <= n_images:
        return f"there is no image {call.target}, there are {n_images}"
    return ""


MAX_CHARS = 16_000
"""Of a whole row: 4,096 tokens, which the trainers' rollouts have by default, at four characters each."""
_EXCERPT = 80


@check()
def has_a_thought(case: Case) -> CheckResult:
    """Every program has a thought before it, an answer without programs too; ``score`` is the share that has."""
    if not (rounds := case.trajectory.rounds):
        has_one = bool(case.trajectory.final_thought.strip())
        detail = "" if has_one else "no thought before the answer"
        return decided(has_one, Flaw.NO_THOUGHT, detail, score=float(has_one))
    empty = [str(n) for n, turn in enumerate(rounds, 1) if not turn.thought.strip()]
    detail = f"no thought before the program of round {', '.join(empty)}" if empty else ""
    return decided(not empty, Flaw.NO_THOUGHT, detail, score=round(1 - len(empty) / len(rounds), 4))


@check()
def not_repetitive(case: Case) -> CheckResult:
    """No passage, repeated five times or more, makes up over half of a thought, of the code or of the whole text."""
    parts = _parts(case)
    long = [(where, text) for where, text in parts if len(text) >= MIN_CHARS]
    for where, text in (*long, ("the whole text", "\n".join(text for _, text in parts))):
        # what is longer fails `not_too_long`
        watch = Repetition()
        if watch.feed(text[:MAX_CHARS]) or watch.found:
            # the middle: a text may begin well and fall into a circle later
            start = max(0, (len(text) - _EXCERPT) // 2)
            excerpt = text[start : start + _EXCERPT]
            return failed(Flaw.REPETITIVE, f"{where} ({len(text):,} characters) repeats itself: {excerpt!r}")
    return passed()


@check()
def not_too_long(case: Case) -> CheckResult:
    """The policy wrote at most 16,000 characters; ``score`` counts them."""
    n_chars = sum(len(text) for _, text in _parts(case))
    detail = f"{n_chars:,} characters, at most {MAX_CHARS:,}"
    return decided(n_chars <= MAX_CHARS, Flaw.TOO_LONG, detail, score=float(n_chars))


def _parts(case: Case) -> list[tuple[str, str]]:
    return [*case.texts("the code", str), ("the answer", case.trajectory.answer)]
