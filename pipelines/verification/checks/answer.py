"""Checks on the answer: whether it is right, and whether the last thought says the same."""

import re
import unicodedata
from collections.abc import Mapping

from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records.answers import letters_of, matches, split_choice
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import (
    CheckResult,
    Flaw,
    by_votes,
    check,
    decided,
    failed,
    judged,
    passed,
)
from darkroom.pipelines.verification.grading import Grade, grade
from darkroom.pipelines.verification.grading.judged import PROMPT, answer_slots, rejection_reason
from darkroom.pipelines.verification.judges.judge import Judge, JudgeQuestion


@check(version=2)
def answer_matches(case: Case) -> CheckResult:
    """The answer is the sample's."""
    sample, answer = case.sample, case.trajectory.answer
    # first without the truth, which an audit may not know
    if matches(answer, sample.answer, sample.choices):
        return passed()
    if any(matches(answer, expected, sample.choices) for expected in right_answers(sample)[1:]):
        return passed()
    return failed(Flaw.WRONG_ANSWER, f"answered {answer!r}, expected {sample.answer!r}")


@check(version=2)
def answer_verified(case: Case) -> CheckResult:
    """The answer has the sample's value: exact, numeric, choice, math-verify, ANLS, in that order."""
    return _graded(grade(case.trajectory.answer, case.sample))


def _graded(verdict: Grade, more: str = "") -> CheckResult:
    return decided(verdict.right, Flaw.WRONG_ANSWER, f"{verdict.kind}: {verdict.detail}{more}", score=verdict.score)


ANSWER = JudgeQuestion("judge_answer", PROMPT, lambda case: grade(case.trajectory.answer, case.sample).right)
"""Return whether an answer says what the sample's answer says; the embedded judge grades."""


@judged(ANSWER, version=3)
async def answer_judged(case: Case, judge: Judge) -> CheckResult:
    """The answer is the sample's by its grade or, where no rule could tell, by most votes of a judge."""
    sample, answer = case.sample, case.trajectory.answer
    if (verdict := grade(answer, sample)).right or sample.choices or verdict.kind in ("numeric", "choice"):
        return _graded(verdict)
    if why := rejection_reason(answer, sample.answer):
        return _graded(verdict, f"; no judge asked: {why}")
    return by_votes(await judge.ask(ANSWER, case, slots=answer_slots(answer, sample)), Flaw.WRONG_ANSWER)


_BEFORE_LETTER = r"(?:choices?|options?|answers?(?: is| are)?:?) (?:\(?[a-z]\)?(?:,? and |, )){0,25}\(?"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_DENIED = re.compile(r"(?:\bnot|\bno|n't|\brather than|\binstead of|\bneither|\bnor)(?: an?| the)?\s*$")
_MAX_DENIAL = 40
"""Characters of the longest of them."""
_TOKEN = re.compile(r"[+-]?[\d.,]++")


def _thought_names_answer(case: Case) -> bool:
    """The thought names the answer, by its text, number or letter, and its end asserts no other choice."""
    thought, answer, choices = case.trajectory.final_thought, case.trajectory.answer, case.sample.choices
    if not choices:
        numbers = {token.rstrip(".,") for token in _TOKEN.findall(thought)}
        return _says(_plain(thought), answer) or any(matches(n, answer) for n in numbers if n[-1:].isdecimal())
    letters = {*letters_of(answer, choices)}
    return bool(letters) and _asserted(_plain(thought), dict(map(split_choice, choices))) == letters


def _asserted(thought: str, choices: Mapping[str, str]) -> set[str]:
    """The choices that the thought names by letter anywhere, or by text in its last two sentences without denying it. A
    text inside another's ("red", "dark red") is not named where only the longer one is."""
    stated = {letter for letter in choices if re.search(rf"{_BEFORE_LETTER}{letter}\b", thought, re.IGNORECASE)}
    end = " ".join(_SENTENCE.split(thought)[-2:])
    for letter, text in sorted(choices.items(), key=lambda choice: -len(choice[1])):
        if _says(end, text):
            stated.add(letter)
            end = end.replace(_plain(text), " ")
    return stated


def _says(thought: str, text: str) -> bool:
    pattern = re.compile(rf"(?<!\w){re.escape(_plain(text))}(?!\w)")
    starts = (match.start() for match in pattern.finditer(thought))
    return any(not _DENIED.search(thought, max(start - _MAX_DENIAL, 0), start) for start in starts)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


CONSISTENCY = JudgeQuestion("consistency", bundled_prompt("judge_consistency"), _thought_names_answer)


@judged(CONSISTENCY)
async def consistency(case: Case, judge: Judge) -> CheckResult:
    """A judge says that the last thought and the answer say the same."""
    row = case.trajectory
    slots = {"question": question_text(case.sample), "thought": row.final_thought, "answer": row.answer}
    return by_votes(await judge.ask(CONSISTENCY, case, slots=slots), Flaw.INCONSISTENT)
