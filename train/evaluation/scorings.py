"""Scores of answers as public benchmarks define them: 0..1 by name, for questions without choices; and as the sets' own
code gives them, quirks included, by the rules in the benchmarks' files (``official``).

    SCORINGS["relaxed"]("12.4", ("12",), sample)            # 1.0: at most 5 % off
    SCORINGS["close"]("red", ("red",), sample)              # None: not about numbers, so the grader decides

Where a set lets a model extract the answer from free text first, the answer that the protocol marks stands for it. Not
here: scorings by a judge (``judged``, ``share``; ``train/rl/judging/judges.py``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial

import numpy as np

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import edit_similarity, letter_of, split_choice
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.choices import chosen_letter
from darkroom.pipelines.verification.grading.numeric import as_number, read_quantity
from darkroom.pipelines.verification.grading.text_match import similarity
from darkroom.train.evaluation.benchmarks import OfficialRule, Scoring

ANLS_THRESHOLD = 0.5
"""Less alike than this counts nothing (Biten et al. 2019, eq. 1; InfographicVQA §5)."""
RELAXED_CHANGE = Fraction(1, 20)
CLOSE = Fraction(1, 1000)
_THETAS = np.linspace(0.5, 0.95, 10)  # VSI-Bench's own floating point, which decides at the edges
MAX_PRECISION = 20
"""Decimal places. A row that asks for more, or for none that is a number, says nothing about rounding."""
MAX_CHARS = 4000
"""A longer answer is no answer."""
_LETTERS = "ABCDEFGHIJ"
_CHOICES = tuple(f"{letter}. {letter}" for letter in _LETTERS)
_LABEL = re.compile(rf"\(?([{_LETTERS}])(?:\)|[.:)])\s+\S", re.ASCII)
_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}")

Scorer = Callable[[str, Sequence[str], Sample], float | None]
"""Arguments: the answer, the accepted ones, the question's sample. None: not for this question."""


def anls(answer: str, accepted: Sequence[str]) -> float:
    """Likeness 0..1 to the nearest accepted answer; below ``ANLS_THRESHOLD`` it is 0 (InfographicVQA's metric)."""
    best = max((similarity(answer, text) for text in accepted), default=0.0)
    return best if best >= ANLS_THRESHOLD else 0.0


def relaxed(answer: str, expected: str) -> float:
    """Relaxed accuracy (ChartQA §5.1): numbers at most 5 % off, other answers the same text; ``12%`` is 0.12."""
    number, expected_number = _decimal(answer), _decimal(expected)
    if number is None or not expected_number:
        return float(bare(answer).casefold() == bare(expected).casefold())
    return float(abs(number - expected_number) <= RELAXED_CHANGE * abs(expected_number))


def mean_relative_accuracy(answer: str, expected: str) -> float:
    """Proportion of θ = 0.5, 0.55, …, 0.95 with a relative error below 1 - θ (VSI-Bench, arXiv 2412.14171, §3.3)."""
    number, expected_number = _value(answer), _value(expected)
    if number is None or not expected_number:
        return float(number == expected_number == 0)
    error = abs(number - expected_number) / abs(expected_number)
    return sum(error < Fraction(n, 20) for n in range(1, 11)) / 10


def close(answer: str, expected: str) -> float | None:
    """Numbers at most 0.001 apart (DynaMath); None where ``expected`` is no number."""
    expected_number, number = _value(expected), _value(answer)
    return None if expected_number is None else float(number is not None and abs(number - expected_number) <= CLOSE)


def rounded(answer: str, expected: str, precision: int | None) -> float | None:
    """A number rounded to ``precision`` decimals, or cut to a whole one (MathVista); None for other answers."""
    expected_number, number = _value(expected), _value(answer)
    if number is None or expected_number is None:
        return None if expected_number is None else 0.0
    scale = 10 ** (precision or 0)
    return float((Fraction(round(number * scale), scale) if precision else int(number)) == expected_number)


def contains(answer: str, accepted: Sequence[str], *, spaces: bool = True) -> float:
    """Score 1.0 if any accepted answer is in the answer, in lower case; without ``spaces`` as written (OCRBench)."""

    def plain(text: str) -> str:
        return text.lower().replace("\n", " ").strip() if spaces else "".join(text.split())

    return float(any(plain(text) in plain(answer) for text in accepted if plain(text)))


def letters(answer: str, expected: str) -> float | None:
    """The same set of option letters, where the options are not in the row (``A, C``); None for another answer."""
    if not re.fullmatch(rf"[{_LETTERS}](?:[\s,]*[{_LETTERS}])*", expected.strip()):
        return None
    plain, parts = bare(answer), [part for part in re.split(r"[,;&]|\band\b", answer) if part.strip()]
    chosen = {chosen_letter(part, _CHOICES) for part in parts}
    if re.fullmatch(rf"[{_LETTERS}]{{2,}}", plain):
        chosen = {*plain}
    elif None in chosen:
        chosen = {label[1]} if (label := _LABEL.match(plain)) else set()
    return float(chosen == set(re.findall(rf"[{_LETTERS}]", expected)))


def yes_no(answer: str, expected: str) -> float:
    """Yes or no, of which ``answer`` names one; ``expected`` may be 1 or 0 (HallusionBench)."""
    words = set(re.findall(r"[a-z]+", answer.lower())) & {"yes", "no"}
    return float(words == {{"1": "yes", "0": "no"}.get(expected.strip(), expected.strip().lower())})


def numbers(answer: str, expected: str) -> float:
    """The same whole numbers in the same order: ``rows={5} columns={6}`` for ``5,6``."""
    return float(_integers(answer) == _integers(expected) != [])


def overlap(answer: str, expected: str) -> float:
    """Intersection over union of the whole numbers in both (TIR-Bench, spot the difference)."""
    own, right = set(_integers(answer)), set(_integers(expected))
    return len(own & right) / len(own | right) if own | right else 0.0


def positions(answer: str, expected: str) -> float:
    """Proportion of positions with the right number (TIR-Bench, jigsaw); 0 for another count of numbers."""
    own, right = _integers(answer), _integers(expected)
    n_same = sum(number == target for number, target in zip(own, right, strict=False))
    return n_same / len(right) if right and len(own) == len(right) else 0.0


def braced(answer: str, expected: str) -> float | None:
    """Score the text in braces, as numbers or one text (VLMs Are Blind); None for an answer without braces."""
    inner = _BRACES.findall(answer)
    if not inner:
        return None
    return max(numbers(",".join(inner), expected), float(inner[-1].strip().casefold() == expected.strip().casefold()))


SCORINGS: dict[Scoring, Scorer] = {
    "anls": lambda answer, accepted, sample: anls(answer, accepted),
    "relaxed": lambda answer, accepted, sample: max(relaxed(answer, text) for text in accepted),
    "relative": lambda answer, accepted, sample: mean_relative_accuracy(answer, sample.answer),
    "close": lambda answer, accepted, sample: close(answer, sample.answer),
    "rounded": lambda answer, accepted, sample: rounded(answer, sample.answer, _precision(sample)),
    "contains": lambda answer, accepted, sample: contains(answer, accepted),
    "contains_unspaced": lambda answer, accepted, sample: contains(answer, accepted, spaces=False),
    "letters": lambda answer, accepted, sample: letters(answer, sample.answer),
    "yes_no": lambda answer, accepted, sample: yes_no(answer, sample.answer),
    "numbers": lambda answer, accepted, sample: numbers(answer, sample.answer),
    "overlap": lambda answer, accepted, sample: overlap(answer, sample.answer),
    "positions": lambda answer, accepted, sample: positions(answer, sample.answer),
    "braced": lambda answer, accepted, sample: braced(answer, sample.answer),
}
"""Every scoring but ``grader``, ``judged`` and ``share``."""


def official(answer: str, accepted: Sequence[str], sample: Sample, *, rules: Sequence[OfficialRule]) -> float | None:
    """Score by the first rule under which the answer counts at all. ``wrong`` ends the rules; None: they do not say."""
    kinds = {"", sample.category, str(details_of(sample).get("answer_type")), "choices" if sample.choices else ""}
    options = dict(map(split_choice, sample.choices))
    golds = [letter] if options and (letter := letter_of(sample.answer, sample.choices)) else accepted
    for rule in rules:
        text = rule.drop.sub("", answer).strip()
        part = rule.find.search(text.lower() if rule.lower else text)
        right = [gold.lower() if rule.lower else gold for gold in golds if rule.gold.search(gold)]
        if part and rule.of in kinds and right:
            compared, value = ",".join(part.groups("") or [part[0]]), 0.0
            for gold in right:
                with suppress(ValueError, TypeError, ArithmeticError):  # no number: not by this rule
                    value = max(value, float(_COMPARISONS[rule.compare](compared, gold, options, sample) or 0))
            if value or rule.compare == "wrong":
                return value
    return None


def _closest(text: str, options: Mapping[str, str]) -> str:
    """The option with the fewest edits, of equals the first."""
    edits = {name: round((1 - edit_similarity(text, own)) * max(len(text), len(own))) for name, own in options.items()}
    return min(edits, key=lambda name: edits[name])


def _in_prompt(part: str, gold: str, options: Mapping[str, str], sample: Sample) -> bool:
    """The letter before the answer in the prompt, else the one with the fewest edits."""
    for letter in "" if part in tuple(_LETTERS) else _LETTERS:
        if any(letter + mark + part in sample.question for mark in (". ", ".", " ", "")):
            part = letter
    return _closest(part, {letter: letter for letter in _LETTERS}) == gold


def _as_ours(scorer: Scorer, part: str, gold: str, _: Mapping[str, str], sample: Sample) -> float | None:
    return scorer(part, (gold,), sample)


_COMPARISONS: dict[str, Callable[[str, str, Mapping[str, str], Sample], float | None]] = {
    **{str(name): partial(_as_ours, by) for name, by in SCORINGS.items()},
    "same": lambda part, gold, *_: part == gold,
    "within": lambda part, gold, *_: gold in part,
    "anagram": lambda part, gold, *_: sorted(part) == sorted(gold),
    "wrong": lambda *_: 0,
    "option": lambda part, gold, options, _: (
        gold == next((name for name in options if part.lower() in f"({name}) {options[name]}".lower()), None)
    ),
    "closest": lambda part, gold, options, _: _closest(part, options) == gold,
    "in_prompt": _in_prompt,
    "text": lambda part, gold, options, _: part == options.get(gold.upper(), gold).lower(),
    "integer": lambda part, gold, *_: str(int(float(part))) == gold,
    "precision": lambda part, gold, _, sample: str(round(float(part), _precision(sample))) == gold,
    "hundredths": lambda part, gold, options, _: round(float(part), 2) == round(float(options.get(gold, gold)), 2),
    "pi": lambda part, gold, *_: abs(float(part) * np.pi - float(gold)) <= CLOSE,
    "scaled": lambda part, gold, _, sample: (  # by the row's error; a hundredth or a hundredfold, too
        min(abs(float(part) * scale - float(gold)) for scale in (0.01, 1, 100))
        <= 1.01 * float(details_of(sample).get("error") or 1e-8)
    ),
    "thresholds": lambda part, gold, *_: float(np.mean(abs(float(part) - float(gold)) / float(gold) <= 1 - _THETAS)),
}
"""Comparisons of the part that a rule finds with the right letter or answer, beside the scorings."""


def _value(text: str) -> Fraction | None:
    """The number that an answer is, without its unit."""
    quantity = read_quantity(as_number(bare(text)))
    return None if quantity is None else quantity.value


def _decimal(text: str) -> Fraction | None:
    """A number as ChartQA's answers have it; a percentage is a hundredth."""
    plain = bare(text).replace(",", "").lstrip("$€£").strip()
    with suppress(ValueError):  # infinities are no fraction
        return Fraction(str(float(plain.removesuffix("%")))) / (100 if plain.endswith("%") else 1)
    return None


def _integers(text: str) -> list[int]:
    return [int(digits) for digits in _INTEGER.findall(text)]


def _precision(sample: Sample) -> int | None:
    precision = details_of(sample).get("precision")
    return int(precision) if isinstance(precision, int | float) and 0 <= precision <= MAX_PRECISION else None
