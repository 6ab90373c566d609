"""Privileged facts must not show: a trained model never has them, so an example must not lean on them."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed

_TELLTALE = re.compile(
    r"ground[ -]?truth|bounding[ -]box(?:es)? (?:provided|given|coordinates)"
    r"|(?:provided|given|supplied|specified|known) (?:region|box|bounding|coordinates|area|hint|angle)"
    r"|(?:region|box|coordinates|angle|hint)s? (?:(?:is|are|was|were) )?(?:provided|given|supplied|specified)"
    r"|according to the (?:hint|metadata|file ?name|prompt)|file ?name (?:says|suggests|indicates)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@check()
def hint_stays_hidden(case: Case) -> Verdict:
    """No thought and no comment repeats a number of the hint or speaks of being told.

    Numbers count, however they are spelled (1200, 1,200, 1200.0, 1200x800), when they are part of the hint, have two
    digits or more, and are neither in the question, its answer or the images' sizes, where anyone may read them.
    """
    secret = _secret_numbers(case)
    for where, text in _prose(case):
        if told := _TELLTALE.search(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {told[0]!r}")
        if leaked := sorted(secret.intersection(_numbers(text))):
            numbers = ", ".join(f"{number:g}" for number in leaked)
            return failed(Flaw.HINT_NUMBER, f"{where} repeats {numbers} from the hint")
    return passed()


def _secret_numbers(case: Case) -> set[float]:
    sample = case.sample
    sizes = [f"{image.width}x{image.height}" for image in case.trajectory.images]
    public = " ".join([sample.question, *sample.choices, sample.answer, *sizes])
    told = {number for value in case.hint.values() for number in _NUMBER.findall(str(value))}
    return {float(number) for number in told if len(number) > 1} - _numbers(public)


def _numbers(text: str) -> set[float]:
    """The values of all numbers, a comma between three digits read as nothing and as a comma."""
    return {float(number) for read in (text, _THOUSANDS.sub("", text)) for number in _NUMBER.findall(read)}


def _prose(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"a comment of round {n}", "\n".join(_comments(turn.code))
    yield "the final thought", case.trajectory.final_thought


def _comments(code: str) -> Iterator[str]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return  # what the tokenizer could read has been yielded; code that does not parse fails `executes`
