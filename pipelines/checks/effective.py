"""Whether work on an image did what was decided and reached its goal: measured on pixels, and asked of a judge."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.change import TURNED_DEGREES, Change, Operation, change, residual
from pipelines.checks.base import Flaw, Verdict, check, failed, judged, passed
from pipelines.checks.crop import MAX_CROP_SHARE, SLACK_PIXELS
from pipelines.checks.shown import executed_code
from pipelines.checks.votes import by_votes
from pipelines.judges import Judge, Question
from pipelines.prompts import bundled_prompt
from pipelines.tasks import question_text


@check()
def operation_applied(case: Case) -> Verdict:
    """The last image shows the operation that was decided; ``score`` counts the operations that it shows."""
    decided = Operation(case.hint["operation"])
    found = _change(case)
    if found is None:
        return failed(Flaw.OTHER_OPERATION, "what is shown has nothing in common with the question's image", score=0.0)
    applied = found.operations
    n = float(len(applied))
    if len(applied) > 1 if decided is Operation.COMBINED else decided in applied:
        return passed(str(found), score=n)
    return failed(Flaw.OTHER_OPERATION, f"decided {decided.name.lower()}, but it is {found}", score=n)


def _effective(case: Case) -> bool:
    """Every operation that the last image shows has reached what is known to be its goal, and there is one."""
    found = _change(case)
    return found is not None and bool(found.operations) and all(_reached(case, found, o) for o in found.operations)


EFFECTIVE = Question("judge_effective", bundled_prompt("judge_effective"), _effective)


@judged(EFFECTIVE)
async def judge_effective(case: Case, judge: Judge) -> Verdict:
    """A judge sees question, thought, code, pictures and answer and says that the work reached its goal."""
    rounds = case.trajectory.rounds
    shown = tuple(image for turn in rounds for image in turn.observation.images)
    if not shown:
        return failed(Flaw.NO_IMAGE, "there is no result that a judge could look at", score=0.0)
    slots = {
        "question": question_text(case.sample),
        "thought": "\n\n".join(turn.thought for turn in rounds),
        "code": "\n\n".join(turn.code for turn in rounds),
        "final_thought": case.trajectory.final_thought,
        "answer": case.trajectory.answer,
        "n_shown": len(shown),
    }
    votes = await judge.ask(EFFECTIVE, case, slots=slots, images=(case.trajectory.images[0], *shown))
    return by_votes(votes, Flaw.INEFFECTIVE)


def _change(case: Case) -> Change | None:
    """What made the last image that was shown, of the first image that it has to do with."""
    seen = [turn for turn in case.trajectory.rounds if turn.observation.images]
    if not seen:
        return None
    shown, code = case.store.open(seen[-1].observation.images[-1]), executed_code(seen[-1])
    found = (change(shown, case.store.open(image), code) for image in case.trajectory.images)
    return next((made for made in found if made is not None), None)


def _reached(case: Case, found: Change, done: Operation) -> bool:
    """By the truth where there is one: upright, more contrast, the whole target in a small part."""
    truth = case.sample.truth
    if done is Operation.DIRECTION:
        return truth.angle is None or (residual(truth.angle + found.angle) <= TURNED_DEGREES and not found.mirrored)
    if done is Operation.LIGHTING:
        return found.contrast_gain >= 1
    if not truth.boxes:
        return True
    slack = SLACK_PIXELS + max(found.box.width, found.box.height) // 100
    return found.share <= MAX_CROP_SHARE and found.box.contains(truth.boxes[0].box, slack=slack)
