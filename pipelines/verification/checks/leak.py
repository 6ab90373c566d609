"""A judge reads the thoughts for privileged facts: paraphrases that the words of ``hint_stays_hidden`` do not have.

It costs votes, so it is off until asked for (``DARKROOM_LEAK_JUDGE``). The judge sees the question and the thoughts,
between fences, and no image, answer or hint: what only they tell is measured elsewhere.
"""

from collections.abc import Iterator

from darkroom.pipelines.models.prompts import bundled_prompt, escaped, nonce
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, by_votes, judged
from darkroom.pipelines.verification.checks.hint import hint_stays_hidden
from darkroom.pipelines.verification.judges.base import Judge, JudgeQuestion


def _no_words_of_a_hint(case: Case) -> bool:
    return hint_stays_hidden(case).passed


LEAK = JudgeQuestion("judge_leak", bundled_prompt("judge_leak"), _no_words_of_a_hint)
"""Whether thoughts are free of privileged facts; the embedded judge goes by the words."""


@judged(LEAK)
async def judge_leak(case: Case, judge: Judge) -> CheckResult:
    """A judge says that no thought leans on what only the row's maker can know."""
    question, thoughts = question_text(case.sample), [*_thoughts(case)]
    slots = {
        "question": escaped(question),
        "thoughts": "\n".join(f"{when}: {escaped(thought)}" for when, thought in thoughts),
        "nonce": nonce(question, *(thought for _, thought in thoughts)),
    }
    return by_votes(await judge.ask(LEAK, case, slots=slots), Flaw.HINT_MENTIONED)


def _thoughts(case: Case) -> Iterator[tuple[str, str]]:
    """Each thought with what its writer had seen by then."""
    rounds = case.trajectory.rounds
    seen = "having seen the image as it was given"
    for turn in rounds:
        yield seen, turn.thought
        shown = len(turn.observation.images)
        seen = f"having seen {shown} new image{'s' * (shown != 1)} and the code's output"
    yield seen, case.trajectory.final_thought
