"""Claims of a thought or a comment about size, contrast, orientation, zoom and turning, compared with measurements.

Rejected is what the measurements contradict, and nothing else: a target between 28 and 56 pixels of the model may be
called too small or readable, and what cannot be measured (an image of unknown orientation, a view that has
nothing in common with the question's image) is not judged.

The words of claims (``claim_words.toml``) were measured on sentences that were written before the patterns, half of
them not looked at while the patterns were written: ``python -m tests.measurements.claims``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.records import ImageRef, Round
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, failed, passed
from darkroom.pipelines.verification.checks.crop import executed_code
from darkroom.pipelines.verification.checks.hint import comments
from darkroom.pipelines.verification.grading.number_words import ONES
from darkroom.pipelines.verification.grading.word_lists import COMPILING, Patterns, read_words
from darkroom.pipelines.vision.image_transform import (
    PART_SHARE,
    ImageTransform,
    measure_transform,
    residual,
    side_by_side,
    trimmed,
)
from darkroom.pipelines.vision.visibility import (
    QWEN2_5_VL,
    SEEN_LEVELS,
    SEEN_SIDE,
    SMALL_SIDE,
    Visibility,
    resized,
    visibility_as_given,
    visibility_in,
)

_WORDS = read_words(__file__, "claim_words")
_RE = Patterns(_WORDS.pop("patterns"))
_TURNS: dict[str, tuple[float, float]] = _WORDS.pop("degrees")
_NUMBERS: dict[str, float] = {word: float(n) for n, word in enumerate(ONES)} | _WORDS.pop("numbers")
_MAX_CHARS, _MAX_CLAUSE = 16_000, 400


class Claim(NamedTuple):
    """A claim; ``kind``: its name in ``claim_words.toml``; ``of_now``: of what was shown last ("still too small")."""

    kind: str
    phrase: str
    of_now: bool

    @property
    def number(self) -> float:
        """The last number in its words: of "fivefold", "3x" and "the third crop"."""
        words = (_RE.ending.sub("", word) for word in _RE.number.findall(self.phrase.casefold()))
        numbers = [_NUMBERS.get(word, word) for word in words if word in _NUMBERS or word[0].isdigit()]
        return float(numbers[-1]) if numbers else 1.0


def claims_in(text: str) -> list[Claim]:
    """The claims of a text, sentence by sentence; nothing is claimed by a question, a denial or a quotation."""
    sentences = _RE.sentence.split(_RE.quoted.sub("''", text[:_MAX_CHARS]))
    return [claim for sentence in sentences for claim in _claims_of(" ".join(sentence.split()))]


@lru_cache(maxsize=1024)
def _claims_of(sentence: str) -> list[Claim]:
    """Remembered: thoughts have sentences in common."""
    if sentence.endswith("?"):
        return []
    of_now = bool(_RE.still.search(sentence))
    lowered = sentence.replace("İ", "I").lower()  # of the same length: no other letter becomes two

    def of(kind: str) -> Iterator[Claim]:
        for start, end in (match.span() for match in _pattern(kind).finditer(lowered)):
            if not (_is_denied(sentence, start, kind) or _RE.needless.match(sentence, end)):
                yield Claim(kind, sentence[start:end].strip(), of_now)

    return [claim for kind in _WORDS for claim in islice(of(kind), 1)]


@lru_cache(maxsize=64)
def _pattern(kind: str) -> re.Pattern[str]:
    """The words of a kind, each at a word's start, in lower case (three times quicker); compiled when needed."""
    with COMPILING:
        return re.compile(rf"(?!(?<=\w)\w)(?:{'|'.join(_WORDS[kind])})", re.VERBOSE)


def _is_denied(sentence: str, end: int, kind: str) -> bool:
    """Return whether the clause denies what it says from ``end`` on, or only plans it."""
    start = max(0, end - _MAX_CLAUSE)
    return any(
        denial.search(sentence, max((at.end() for at in boundary.finditer(sentence, start, end)), default=start), end)
        for denial, boundary in ((_RE.denied, _RE.clause), (_RE.nothing, _RE.turn), (_RE.planned, _RE.turn))
        if denial is not _RE.planned or kind in ("clear", "lit", "upright")
    )


MIN_ENLARGEMENT = 1.1
"""Pixels per pixel, along a side: less is the tremor of the measurement."""

FACTOR_SLACK = 0.2
"""Of a factor that is named: "five times" may be 4.2 to 6.2."""


@dataclass(frozen=True, slots=True)
class View:
    """An image that code made of the question's: ``None`` for what could not be measured."""

    now: Visibility
    enlargement: float | None = None
    """Pixels per pixel of the question's image, along a side."""
    share: float | None = None
    turns: bool | None = None
    relights: bool | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """Measurements at the point where a text stands. ``start``: the image as the policy was given it. ``now``: the last
    view before the text, None before any. ``views``: those that the text may speak of, its own round's among them."""

    start: Visibility
    now: Visibility | None
    views: Iterable[View]


def contradiction(claim: Claim, facts: Situation) -> str | None:
    """Say how the measurements contradict a claim; None if they do not."""
    if claim.kind in _WHAT:
        shown: list[View] = []
        for view in facts.views:
            shown.append(view)
            if _show(claim, shown):
                return None
        return _WHAT[claim.kind] if shown else "no code showed anything"
    now = facts.now or facts.start
    views = [now] if claim.of_now or claim.kind == "upright" else [facts.start, now]
    if claim.kind in _TURNS:
        least, most = _TURNS[claim.kind]
        angles = [view.angle for view in views if view.angle is not None]
        if not angles or any(least <= residual(angle) <= most for angle in angles):
            return None
        return f"the image is turned by {angles[-1]:g} degrees" if angles[-1] else "the image is upright"
    match claim.kind:
        case "too_small":
            sides = [view.side for view in views if view.side is not None]
            return f"it has {min(sides):g} pixels of the model" if sides and min(sides) >= SEEN_SIDE else None
        case "too_faint":
            levels = [view.levels for view in views if view.levels is not None]
            return f"it spreads over {min(levels):g} grey levels" if levels and min(levels) >= SEEN_LEVELS else None
        case "clear" if now.side is not None and now.side < SMALL_SIDE:
            return f"it has {now.side:g} pixels of the model"
        case "clear" | "lit":
            return f"it spreads over {now.levels:g} grey levels" if now.is_faint else None
        case _:
            return None


_WHAT = {
    "enlarge": "nothing was enlarged",
    "zoom": "no part was cut out or enlarged",
    "turn": "nothing was turned",
    "relight": "neither contrast nor brightness changed",
    "times": "nothing was enlarged as many times",
    "views": "fewer were shown",
}


def _show(claim: Claim, views: Sequence[View]) -> bool:
    """Return whether the claim holds of ``views``, of which the last is new."""
    view = views[-1]
    if claim.kind == "views":
        return len(views) >= claim.number
    if view.enlargement is None or view.share is None:
        return True
    if claim.kind == "turn":
        return view.turns is not False
    if claim.kind == "relight":
        return view.relights is not False
    if claim.kind == "times":  # along a side or in area, of the image or of an earlier view
        ratios = [view.enlargement / (earlier.enlargement or 1) for earlier in views[:-1]] + [view.enlargement]
        return any(abs(claim.number / ratio**power - 1) <= FACTOR_SLACK for ratio in ratios for power in (1, 2))
    grown = view.enlargement >= MIN_ENLARGEMENT
    return grown if claim.kind == "enlarge" else grown or view.share <= PART_SHARE


@check(version=3)
def claims_hold(case: Case) -> CheckResult:
    """No thought or comment claims of size, contrast, zoom or turning what the images contradict; ``score``: claims."""
    if not case.trajectory.images:
        return passed("no image to compare with", score=0.0)
    measured = _Measured(case)
    n_claims = 0
    for at, (where, text) in enumerate(case.texts("a comment", comments)):
        n_before = at // 2  # rounds: each has two texts
        for claim in claims_in(text):
            n_claims += 1
            if why := contradiction(claim, measured.situation(claim, n_before)):
                detail = f"{where} says {claim.phrase!r}, but {why}"
                return failed(Flaw.CLAIM_CONTRADICTED, detail, score=float(n_claims))
    return passed(f"{n_claims} claims", score=float(n_claims))


class _Measured:
    """The measurements of a case, each made when a claim needs it."""

    def __init__(self, case: Case) -> None:
        self._case = case
        boxes = case.sample.truth.boxes
        self._index = boxes[0].image if boxes and boxes[0].image < len(case.trajectory.images) else 0
        self._image = case.trajectory.images[self._index]
        self._target = boxes[0].box if boxes else None

    def situation(self, claim: Claim, n_before: int) -> Situation:
        """The situation of a text with ``n_before`` rounds before its own."""
        rounds = self._case.trajectory.rounds
        if claim.kind in _WHAT:
            views = (view for turn in reversed(rounds[: n_before + 1]) for view in self._views(turn, claim.kind))
            return Situation(Visibility(), None, views)
        earlier = [turn for turn in rounds[:n_before] if turn.observation.images]
        return Situation(self.start, next(self._views(earlier[-1], claim.kind)).now if earlier else None, ())

    @cached_property
    def start(self) -> Visibility:
        """The target on the image as the policy was given it."""
        case = self._case
        return visibility_as_given(case.sample, case.trajectory.images, case.hint, case.store)

    def _views(self, turn: Round, kind: str) -> Iterator[View]:
        """Views that a round showed, the last image first, with what claims of ``kind`` need."""
        if kind == "views":  # they are counted
            yield from (View(Visibility()) for _ in turn.observation.images)
            return
        boxes = tuple(literal_boxes(executed_code(turn), self._image.width, self._image.height))
        for image in reversed(turn.observation.images):
            transform = _transform(self._case.store, image, self._image, boxes, self.start.is_turned)
            levels = None if kind in _WHAT else visibility_in(image, None, self._case.store).levels
            if transform is None:
                yield View(Visibility(levels=levels))
                continue
            scale = resized(image.width, image.height, QWEN2_5_VL)[0] / image.width
            angle = None if self.start.angle is None else (self.start.angle + transform.angle) % 360
            now = Visibility(side=self._side(transform, scale), levels=levels, angle=angle)
            yield View(now, transform.enlargement, transform.share, turns=transform.turns, relights=transform.relights)

    def _side(self, transform: ImageTransform, scale: float) -> float | None:
        """The target's shorter side in the view; None where it is not, or not wholly, in it."""
        target, image = self._target, self._image
        original = self._case.sample.images[self._index]
        is_altered = (image.width, image.height) != (original.width, original.height)  # the box is of another frame
        if target is None or not (is_altered or transform.box.contains(target, slack=8)):
            return None
        return round(min(target.width, target.height) * transform.enlargement * scale, 1)


@lru_cache(maxsize=512)
def _transform(
    store: ImageStore, image: ImageRef, original: ImageRef, boxes: tuple[Box, ...], is_tilted: bool
) -> ImageTransform | None:
    """Remembered. Of parts side by side the first one's, as together they are no part of the image."""
    first = trimmed(side_by_side(trimmed(store.open(image)), len(boxes))[0])
    return measure_transform(first, store.open(original), boxes, is_tilted=is_tilted)
