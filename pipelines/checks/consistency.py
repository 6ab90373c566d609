"""Whether the last thought and the answer say the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from pipelines.answers import letter_of, matches, split_choice
from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, judged
from pipelines.checks.votes import by_votes
from pipelines.judges import Judge, Question
from pipelines.prompts import bundled_prompt
from pipelines.tasks import question_text

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_DENIED = re.compile(r"(?:\bnot|\bno|n't|\brather than|\binstead of|\bneither|\bnor)(?: an?| the)?\s*$")
_TOKEN = re.compile(r"[+-]?[\d.,]*\d")


def _agree(case: Case) -> bool:
    """The thought names the answer, by its text, number or letter, and its end asserts no other choice."""
    thought, answer, choices = case.trajectory.final_thought, case.trajectory.answer, case.sample.choices
    if not choices:
        return _says(_plain(thought), answer) or any(matches(number, answer) for number in _TOKEN.findall(thought))
    letter = letter_of(answer, choices)
    if letter is None:
        return False
    asserted = _asserted(_plain(thought), dict(map(split_choice, choices)))
    return letter in asserted and not asserted - {letter}


def _asserted(thought: str, choices: Mapping[str, str]) -> set[str]:
    """The choices that the thought names by letter anywhere, or by text in its last two sentences without denying it.

    A text inside another's ("red", "dark red") is not named where only the longer one is.
    """
    stated = {
        letter for letter in choices if re.search(rf"(?:choice|option|answer(?: is)?:?) \(?{letter}\b", thought, re.I)
    }
    end = " ".join(_SENTENCE.split(thought)[-2:])
    for letter, text in sorted(choices.items(), key=lambda choice: -len(choice[1])):
        if _says(end, text):
            stated.add(letter)
            end = end.replace(_plain(text), " ")
    return stated


def _says(thought: str, text: str) -> bool:
    wanted = re.compile(rf"(?<!\w){re.escape(_plain(text))}(?!\w)")
    return any(not _DENIED.search(thought[: found.start()]) for found in wanted.finditer(thought))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


CONSISTENCY = Question("consistency", bundled_prompt("judge_consistency"), _agree)


@judged(CONSISTENCY)
async def consistency(case: Case, judge: Judge) -> Verdict:
    """A judge says that the last thought and the answer say the same."""
    slots = {
        "question": question_text(case.sample),
        "thought": case.trajectory.final_thought,
        "answer": case.trajectory.answer,
    }
    return by_votes(await judge.ask(CONSISTENCY, case, slots=slots), Flaw.INCONSISTENT)
