"""Scores of answers as the sets' own code gives them, quirks included, by the rules in the benchmarks' files.

    official("Blue", ("B",), sample, config.official)       # MME-RealWorld: 1.0, the first capital of A to E is B

The answer that the protocol marks stands for what that code extracts, sometimes with a model. Each file of
``benchmarks/`` names the code (``official_code``) and what is not as there (``differs``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import edit_similarity, letter_of, split_choice
from darkroom.pipelines.records.samples import details_of
from darkroom.train.evaluation.benchmarks import Comparison, OfficialRule
from darkroom.train.evaluation.scorings import CLOSE, close, numbers, overlap, positions, precision_of, relaxed

_LETTERS = {letter: letter for letter in "ABCDEFGHIJ"}
_IN_BRACKETS, _RUN = re.compile(r"\(([a-zA-Z])\)"), re.compile(r"[\d\s,，]+")
_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d{0,30}\.?\d{1,30})(?:e[+-]?\d{1,9})?")


def official(answer: str, accepted: Sequence[str], sample: Sample, rules: Sequence[OfficialRule]) -> float | None:
    """Score by the first rule under which the answer counts; None where none does and none says ``wrong``."""
    kinds = {"", sample.category, str(details_of(sample).get("answer_type")), "choices" if sample.choices else ""}
    letter = letter_of(sample.answer, sample.choices) if sample.choices else None
    golds = [letter] if letter else accepted
    for rule in rules:
        part = _part(answer, rule) if rule.of in kinds and rule.gold.search(golds[0]) else None
        if part is not None:
            texts = (gold.lower() if rule.lower else gold for gold in golds)
            value = max(float(_COMPARISONS[rule.compare](part, text, sample) or 0) for text in texts)
            if value or rule.compare == "wrong":
                return value
    return None


def _part(answer: str, rule: OfficialRule) -> str | None:
    """The part of ``answer`` that ``rule`` compares; None where there is none."""
    text = (rule.drop.sub("", answer) if rule.drop else answer).strip()
    text = text.lower() if rule.lower else text
    match = rule.find.search(text) if rule.find else None
    return ",".join(match.groups() or [match[0]]) if match else None if rule.find else text


def _options(sample: Sample) -> dict[str, str]:
    return dict(map(split_choice, sample.choices))


def _closest(text: str, options: Mapping[str, str]) -> str:
    """The option with the fewest edits, of equals the first."""

    def n_edits(option: str) -> int:
        return round((1 - edit_similarity(text, option)) * max(len(text), len(option)))

    return min(options, key=lambda letter: n_edits(options[letter]))


def _option(part: str, gold: str, sample: Sample) -> bool:
    """The first option that contains the answer (MME-RealWorld)."""
    named = ((letter, f"({letter}) {text}".lower()) for letter, text in _options(sample).items())
    return next((letter for letter, text in named if part.lower() in text), "") == gold


def _nearest(part: str, gold: str, sample: Sample) -> bool:
    """The option with the letter in brackets, or the closest (MathVista)."""
    options, letter = _options(sample), _IN_BRACKETS.search(part)
    text = letter[1].upper() if letter else part
    return (text if text in options else _closest(text, options)) == gold


def _content(part: str, gold: str, sample: Sample) -> bool:
    """The option whose text is the last in the answer (MMMU)."""
    places = {letter: part.lower().rfind(text.lower()) for letter, text in _options(sample).items()}
    return places[gold] == max(places.values()) >= 0


def _letter(part: str, gold: str, sample: Sample) -> bool:
    """The letter before the answer in the prompt, else the closest; several letters in any order (TIR-Bench)."""
    if len(gold) > 1:
        return sorted(part) == sorted(gold)
    for letter in () if part in _LETTERS else _LETTERS:
        if any(letter + mark + part in sample.question for mark in (". ", ".", " ", "")):
            part = letter
    return _closest(part, _LETTERS) == gold


def _value(part: str, gold: str, sample: Sample) -> bool:
    """The text of the option, or a number that is the same to two decimals (MATH-Vision)."""
    text = _options(sample).get(gold, gold)
    return part.lower() == text.lower() or round(_float(part), 2) == round(_float(text), 2)


def _scaled(part: str, gold: str, sample: Sample) -> bool:
    """A number at most the row's ``error`` off, or a hundredth or a hundredfold of one (OlympiadBench)."""
    error = _float(str(details_of(sample).get("error") or 1e-8))
    return any(abs(_float(part) * scale - _float(gold)) <= 1.01 * error for scale in (0.01, 1, 100))


def _relative(part: str, gold: str, sample: Sample) -> float:
    """Mean relative accuracy in the authors' floating point: ten thresholds, at most 1 - θ off (VSI-Bench)."""
    number, target = _float(part), _float(gold)
    thresholds = np.linspace(0.5, 0.95, 10)
    return float(np.mean(abs(number - target) / target <= 1 - thresholds)) if target else number == target


def _run(part: str, gold: str, sample: Sample) -> float:
    """Numbers in place, of the first run of as many as there are (TIR-Bench, jigsaw)."""
    counts = {run: len(re.findall(r"\d+", run)) for run in (gold, *_RUN.findall(part))}
    return positions(next((run for run, n in counts.items() if run != gold and n == counts[gold]), ""), gold)


def _open(part: str, gold: str, sample: Sample) -> bool:
    """The accepted text somewhere, or a number that is the same to two decimals (MMMU)."""
    found = (_float(text.replace(",", "")) for text in _NUMBER.findall(part))
    is_number = round(_float(gold.replace(",", "")), 2) in (round(number, 2) for number in found)
    return is_number or (gold in part if len(gold) > 1 else gold in part.split())


def _float(text: str) -> float:
    """The number that Python reads; NaN, which equals nothing."""
    with suppress(ValueError):
        return float(text)
    return float("nan")


_COMPARISONS: dict[Comparison, Callable[[str, str, Sample], float | None]] = {
    "same": lambda part, gold, sample: part == gold,
    "contains": lambda part, gold, sample: gold in part,
    "wrong": lambda part, gold, sample: 0,
    "open": _open,
    "option": _option,
    "nearest": _nearest,
    "content": _content,
    "letter": _letter,
    "integer": lambda part, gold, sample: f"{np.trunc(_float(part)):.0f}" == gold,
    "rounded": lambda part, gold, sample: str(round(_float(part), precision_of(sample) or 1)) == gold,
    "value": _value,
    "close": lambda part, gold, sample: close(part, gold),
    "pi": lambda part, gold, sample: abs(_float(part) * np.pi - _float(gold)) <= CLOSE,
    "relaxed": lambda part, gold, sample: relaxed(part, gold),
    "scaled": _scaled,
    "relative": _relative,
    "numbers": lambda part, gold, sample: numbers(part, gold),
    "overlap": lambda part, gold, sample: overlap(part, gold),
    "run": _run,
}
