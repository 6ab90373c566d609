"""Free text by a judge: whether a given answer means the expected one; prompt injection is detected before any call.

    judged = await grade_judged(answer, sample, policy, n_votes=3)
    judged.grade.right, judged.votes

An answer spelled like the expected one is right, one that addresses the judge is wrong; both cost nothing. About the
rest the policy votes. The given answer is data, between fences (``pipelines/models/prompts/__init__.py``).

Injection is caught by rules (``judge_injection.toml``), in English and, less widely, in Chinese, Japanese, Spanish,
German and French, also behind compatible letters: orders to drop the rules, roles and chat templates, verdicts and
scores, claims to be the right answer, tags of the prompt, orders how to reply, unseen letters, words of mixed scripts,
hedges, and the expected words turned round. Not caught: other languages, riddles, ciphers, answers to no reader.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.pipelines.models.policies.policy import CompletionRequest, Policy
from darkroom.pipelines.models.prompts import bundled_prompt, escaped, nonce
from darkroom.pipelines.models.self_consistency import collect_votes
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records import Sample, Votes
from darkroom.pipelines.records.answers import compatible
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.verification.grading.answer_text import hedging_words, hidden, turning_words
from darkroom.pipelines.verification.grading.grade import MAX_ANSWER_CHARS, Grade, graded
from darkroom.pipelines.verification.grading.text_match import same_words
from darkroom.pipelines.verification.grading.word_lists import read_words
from darkroom.pipelines.verification.judges.judge import judge_turn, yes_or_no

MAX_CHARS = 1000
"""A judge is shown no longer answer, and none that is cut: what was cut off may take the rest back."""

_ADDRESSED: dict[str, re.Pattern[str]] = {
    why: re.compile("|".join(patterns), re.MULTILINE)
    for why, patterns in read_words(__file__, "judge_injection")["addresses"].items()
}
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W\d_]+")
"""Scripts without spaces: each sign is a word."""
_SPELLED_OUT = re.compile(r"\b(?:\w[ .\-_*]){3,}\w\b")
"""``i g n o r e``, ``i-g-n-o-r-e``"""
_MIN_WORDS, _MIN_CHARS = 2, 3
"""Words of an answer; characters of a word that two answers may share."""


def rejection_reason(answer: str, expected: str) -> str:
    """Why a judge is not asked about ``answer``; empty where it is."""
    if len(answer) > MAX_CHARS:
        return f"an answer of {len(answer)} characters"
    if len(_WORD.findall(answer)) < min(_MIN_WORDS, len(_WORD.findall(expected))):
        return "no words, or one where a sentence is expected"
    if hidden(answer) - hidden(expected):
        return "unseen characters"
    if any(_is_mixed(word) for word in _WORD.findall(answer)):
        return "a word of several scripts"
    plain = compatible(answer).casefold().replace("’", "'")
    plain = _SPELLED_OUT.sub(lambda match: re.sub(r"[ .\-_*]", "", match[0]), plain)
    for why, pattern in _ADDRESSED.items():
        if pattern.search(plain):
            return why
    if hedging_words(answer) - hedging_words(expected):
        return "hedges"
    # the expected words are all there, and other words that deny
    is_turned = _words(expected) <= _words(answer) and turning_words(answer) != turning_words(expected)
    return "turns the expected answer round" if is_turned else ""


def _is_mixed(word: str) -> bool:
    """Return whether a word has letters that look like others: Latin beside Cyrillic or Greek."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in compatible(word)}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _MIN_CHARS}


PROMPT = bundled_prompt("judge_answer")


@dataclass(frozen=True, slots=True)
class JudgedGrade:
    """A grade, and the votes that it came from; None where no judge was called."""

    grade: Grade
    votes: Votes | None = None


async def grade_judged(answer: str, sample: Sample, policy: Policy, *, n_votes: int = 1) -> JudgedGrade:
    """Return whether ``answer`` means the sample's answer, by most of ``n_votes``; a vote that is no answer is not a
    yes. Raises ``RowError`` (policy_failed) when a vote cannot be had."""
    if len(answer) <= MAX_ANSWER_CHARS and any(same_words(answer, text) for text in right_answers(sample)):
        return JudgedGrade(graded(True, "judged", answer, sample, how="spelled the same"))
    if why := rejection_reason(answer, sample.answer):
        return JudgedGrade(graded(False, "judged", answer, sample, how=f"no judge asked: {why}"))
    turn = answer_turn(answer, sample)
    votes = await collect_votes(policy, turn, yes_or_no, n_votes=n_votes, what="judge of an answer")
    verdict = graded(votes.says_yes, "judged", answer, sample, how=str(votes), score=round(votes.share, 4))
    return JudgedGrade(verdict, votes)


def answer_turn(answer: str, sample: Sample) -> CompletionRequest:
    """Request to a judge, without an image: whether two texts mean the same."""
    seed = seed_from("grade", sample.sample_id, digest(answer))
    return judge_turn(PROMPT, answer_slots(answer, sample), sample, row=sample.sample_id, seed=seed)


def answer_slots(answer: str, sample: Sample) -> Mapping[str, str]:
    """Fill the slots of the prompt ``judge_answer``."""
    return {
        "question": escaped(question_text(sample)),
        "expected": escaped(sample.answer),
        "given": escaped(answer),
        "nonce": nonce(sample.sample_id, answer),
    }
