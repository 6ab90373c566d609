"""Checks of every family's text: it does not go round in circles, and it is not longer than a model is trained on.

Looked at is what the policy wrote: thoughts, code, the final thought and the answer. What the sandbox printed is not.
Not found is filler that never repeats itself within ``MAX_CHARS``; whether such a text says anything is for a judge.
"""

from collections.abc import Iterator

from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.repetition import MIN_CHARS, Repetition

MAX_CHARS = 16_000
"""Of a whole row: 4,096 tokens, which the trainers' rollouts have by default, at four characters each."""
_EXCERPT = 80


@check()
def not_repetitive(case: Case) -> CheckResult:
    """No passage, repeated five times or more, makes up over half of a thought, of the code or of the whole text."""
    for where, text in _texts(case):
        # what is longer fails `not_too_long`
        watch = Repetition()
        if watch.feed(text[:MAX_CHARS]) or watch.found:
            return failed(Flaw.REPETITIVE, f"{where} ({len(text):,} characters) repeats itself: {_excerpt(text)!r}")
    return passed()


@check()
def not_too_long(case: Case) -> CheckResult:
    """What the policy wrote has at most 16,000 characters; ``score`` counts them."""
    n_chars = sum(len(text) for _, text in _parts(case))
    detail = f"{n_chars:,} characters, at most {MAX_CHARS:,}"
    return decided(n_chars <= MAX_CHARS, Flaw.TOO_LONG, detail, score=float(n_chars))


def _texts(case: Case) -> Iterator[tuple[str, str]]:
    """Each part that is long enough to be judged, and all of them together."""
    parts = list(_parts(case))
    yield from ((where, text) for where, text in parts if len(text) >= MIN_CHARS)
    yield "the whole text", "\n".join(text for _, text in parts)


def _parts(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"the code of round {n}", turn.code
    yield "the final thought", case.trajectory.final_thought
    yield "the answer", case.trajectory.answer


def _excerpt(text: str) -> str:
    """Its middle: a text may begin well and fall into a circle later."""
    start = max(0, (len(text) - _EXCERPT) // 2)
    return text[start : start + _EXCERPT]
