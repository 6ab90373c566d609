"""Privileged facts must not show: a trained model never has them, so an example must not lean on them."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.checks.secrets import numbers_in, secret_numbers, spelled_in
from pipelines.checks.telltales import reads_file_name, telling_name, telltale


@check(version=2)
def hint_stays_hidden(case: Case) -> Verdict:
    """No thought, comment or name repeats a number of the hint, speaks of being told, or reads it from a file's name.

    Numbers count however they are spelled (1200, 1,200, 1200.0, 1200x800, twelve hundred's digits in words), with what
    follows from them: a box's width and height and its corners as fractions, the angle that undoes an angle.
    """
    secret = secret_numbers(case)
    for where, text in _prose(case):
        if told := telltale(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {told!r}")
        if leaked := sorted({*secret.intersection(numbers_in(text)), *spelled_in(text, secret)}):
            numbers = ", ".join(f"{number:g}" for number in leaked)
            return failed(Flaw.HINT_NUMBER, f"{where} repeats {numbers} from the hint")
    return _programs(case)


def _programs(case: Case) -> Verdict:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        if name := telling_name(turn.code):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} has the name {name!r}")
        if reads_file_name(turn.code):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} makes a number of the file's name")
    return passed()


def _prose(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"a comment of round {n}", "\n".join(_comments(turn.code))
    yield "the final thought", case.trajectory.final_thought


def _comments(code: str) -> Iterator[str]:
    """Comments, and texts that stand alone or explain a function."""
    try:
        previous = tokenize.NEWLINE
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            stands_alone = previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL, tokenize.ENCODING)
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and stands_alone):
                yield token.string
            previous = token.type
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return  # what the tokenizer could read has been yielded; code that does not parse fails `executes`
