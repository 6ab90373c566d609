"""Work on an image did what was decided and reached its goal: measured on pixels, and asked of a judge."""

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, by_votes, check, failed, judged, passed
from darkroom.pipelines.verification.checks.crop import MAX_CROP_SHARE, executed_code, shows_whole
from darkroom.pipelines.verification.judges.judge import Judge, JudgeQuestion
from darkroom.pipelines.vision.image_transform import (
    TURNED_DEGREES,
    ImageTransform,
    Operation,
    measure_transform,
    residual,
)


@check()
def operation_applied(case: Case) -> CheckResult:
    """The last image shows the operation that was decided; ``score`` counts the operations that it shows."""
    decided = Operation(case.hint["operation"])
    transform = _change(case)
    if transform is None:
        return failed(Flaw.OTHER_OPERATION, "what is shown has nothing in common with the question's image", score=0.0)
    applied = transform.operations
    n = float(len(applied))
    if len(applied) > 1 if decided is Operation.COMBINED else decided in applied:
        return passed(str(transform), score=n)
    return failed(Flaw.OTHER_OPERATION, f"decided {decided.name.lower()}, but it is {transform}", score=n)


def _effective(case: Case) -> bool:
    """Every operation that the last image shows has reached what is known to be its goal, and there is one."""
    transform = _change(case)
    return (
        transform is not None
        and bool(transform.operations)
        and all(_reached(case, transform, o) for o in transform.operations)
    )


EFFECTIVE = JudgeQuestion("judge_effective", bundled_prompt("judge_effective"), _effective)


@judged(EFFECTIVE)
async def judge_effective(case: Case, judge: Judge) -> CheckResult:
    """A judge sees question, thought, code, images and answer and says that the work reached its goal."""
    rounds = case.trajectory.rounds
    images = tuple(image for turn in rounds for image in turn.observation.images)
    if not images:
        return failed(Flaw.NO_IMAGE, "there is no result that a judge could look at", score=0.0)
    slots = {
        "question": question_text(case.sample),
        "thought": "\n\n".join(turn.thought for turn in rounds),
        "code": "\n\n".join(turn.code for turn in rounds),
        "final_thought": case.trajectory.final_thought,
        "answer": case.trajectory.answer,
        "n_shown": len(images),
    }
    votes = await judge.ask(EFFECTIVE, case, slots=slots, images=(case.trajectory.images[0], *images))
    return by_votes(votes, Flaw.INEFFECTIVE)


def _change(case: Case) -> ImageTransform | None:
    """Transform that made the last shown image of the first image that it has to do with."""
    rounds = [turn for turn in case.trajectory.rounds if turn.observation.images]
    if not rounds:
        return None
    output, boxes = case.store.open(rounds[-1].observation.images[-1]), literal_boxes(executed_code(rounds[-1]))
    transforms = (measure_transform(output, case.store.open(image), boxes) for image in case.trajectory.images)
    return next((transform for transform in transforms if transform is not None), None)


def _reached(case: Case, transform: ImageTransform, operation: Operation) -> bool:
    """By the truth where there is one: upright, more contrast, the whole target in a small part."""
    truth = case.sample.truth
    if operation is Operation.DIRECTION:
        return truth.angle is None or (
            residual(truth.angle + transform.angle) <= TURNED_DEGREES and not transform.mirrored
        )
    if operation is Operation.LIGHTING:
        return transform.contrast_gain >= 1
    if not truth.boxes:
        return True
    return transform.share <= MAX_CROP_SHARE and shows_whole(transform.box, truth.boxes[0].box)
