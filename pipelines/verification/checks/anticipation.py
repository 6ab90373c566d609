"""The answer before the look: a thought or a comment that names the answer before anything was shown that tells it.

The answer counts by its words, in any order of singular and plural, by the letter of its choice, and as the number of
a thing that the question asks about ("three signs"). What the question says may be said; so may two choices or more,
and answers that are everyday words (yes, no, a lone letter or digit) where they stand alone. A problem in words alone
may be solved before it is computed.
"""

import re
import unicodedata

from darkroom.pipelines.models.tasks import spelled_answer
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import letters_of, split_choice
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, failed, passed
from darkroom.pipelines.verification.checks.crop import locate_round, shows_whole
from darkroom.pipelines.verification.checks.hint import comments, spelled
from darkroom.pipelines.verification.grading.number_words import ONES
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_IGNORED, _EVERYDAY, _SIDES = (frozenset(_DATA[name]) for name in ("ignored", "everyday", "sides"))
_SMALL_NUMBERS = ONES[:10]


@check(version=2)
def answer_not_anticipated(case: Case) -> CheckResult:
    """No thought or comment names the answer before an observation that can have shown it."""
    if not case.sample.images and not case.sample.videos:
        return passed("nothing to look at")
    *texts, _ = case.texts("a comment", comments)
    for at, (where, text) in enumerate(texts):
        n_before = at // 2  # rounds: each has two texts
        if words := names_answer(text, case.sample):
            if any(_may_tell(case, earlier) for earlier in range(n_before)):
                break
            return failed(Flaw.ANSWER_ANTICIPATED, f"{where} says {words!r} before anything showed it")
    return passed()


def names_answer(text: str, sample: Sample) -> str | None:
    """The words by which a text names the sample's answer; None where it does not."""
    question_stems = set(_stems(sample.question))
    if not sample.choices:
        return None if set(_stems(sample.answer)) <= question_stems else _named(text, sample.answer, sample.question)
    if letter := re.search(rf"\b(?:choice|option|answer(?: is)?) \(?{re.escape(sample.answer)}\b", text):
        return letter[0]
    mentions = {letter: _named(text, choice, sample.question) for letter, choice in map(split_choice, sample.choices)}
    words = [mentions.pop(letter) or "" for letter in letters_of(sample.answer, sample.choices)]
    is_open = any(mentions.values()) or not all(words) or set(_stems(spelled_answer(sample))) <= question_stems
    return None if is_open else ", ".join(words)


def _named(text: str, answer: str, question: str) -> str | None:
    if not (stems := _stems(answer)) or (len(stems) == 1 and stems[0] in _EVERYDAY):
        return None
    if len(stems) == 1 and (len(stems[0]) == 1 or stems[0] in _SMALL_NUMBERS):
        return _counted(text, stems[0], question)
    plain = _RE.idioms.sub(" ", text)
    words = [(match.start(), match[0], _stem(match[0])) for match in _RE.word.finditer(plain)]
    words = [word for word in words if word[2] not in _IGNORED]
    is_side = set(stems) <= _SIDES
    for first in range(len(words) - len(stems) + 1):
        window = words[first : first + len(stems)]
        if [stem for *_, stem in window] == stems:
            start = window[0][0]
            if not is_side or not _RE.leaning.search(plain, max(0, start - 60), start):  # "leans to the left"
                return " ".join(word for _, word, _ in window)
    is_number = len(stems) == 1 and stems[0].isdecimal() and len(stems[0]) < 5
    number = spelled(float(stems[0])) if is_number else None
    return number if number and re.search(rf"\b{number}\b", plain, re.IGNORECASE) else None


def _counted(text: str, number: str, question: str) -> str | None:
    """Find ``three signs``, of signs that the question is about; a lone digit or letter may mean anything."""
    if number in _SMALL_NUMBERS:
        number = str(_SMALL_NUMBERS.index(number))
    if not number.isdecimal():
        return None
    words = rf"{number}|{_SMALL_NUMBERS[int(number)]}"
    question_words = {stem for stem in _stems(question) if len(stem) > 2}
    for match in re.finditer(rf"\b(?:{words})\s+(\w+)(?:\s+(\w+))?", text, re.IGNORECASE):
        if _stem(match[1]) in question_words:
            return match[0][: match.end(1) - match.start()]
        if match[2] and _stem(match[2]) in question_words:
            return match[0]
    return None


def _stems(text: str) -> list[str]:
    return [stem for word in _RE.word.findall(text) if (stem := _stem(word)) not in _IGNORED]


def _stem(word: str) -> str:
    """Reduce a word to lower case and the singular, as far as an ending tells."""
    plain = unicodedata.normalize("NFKC", word).casefold()
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") and not plain.endswith("ss") else plain


def _may_tell(case: Case, n: int) -> bool:
    """Return whether round ``n`` (from 0) may have shown the answer: the target, or anything where none is known."""
    turn, boxes = case.trajectory.rounds[n], case.sample.truth.boxes
    if not boxes or not case.trajectory.images or names_answer(turn.observation.text, case.sample):
        return True
    if not turn.observation.images:
        return False
    if case.trajectory.images[0] != case.sample.images[0] or boxes[0].image:
        return True
    location = locate_round(case, turn)
    return location is None or shows_whole(location.box, boxes[0].box)
