"""Checks on operations on an image (turned back, made legible, cropped, enlarged), on the pixels that came back,
contrast with a reader of print where one is installed. A judge also says if a decided operation reached its goal."""

import ast
import math
import tokenize
from collections.abc import Iterable, Iterator

from PIL import Image, ImageOps

from darkroom.pipelines.models.parsing import literal_boxes, parsed
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.tasks import question_text, spelled_answer
from darkroom.pipelines.records.geometry import Box
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
from darkroom.pipelines.verification.checks.crop import (
    MAX_CROP_SHARE,
    MIN_LIKENESS,
    executed_code,
    last_located,
    shows_whole,
    sides_in_view,
)
from darkroom.pipelines.verification.checks.hint import tokens
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words
from darkroom.pipelines.verification.judges.judge import Judge, JudgeQuestion
from darkroom.pipelines.vision.image_transform import (
    TURNED_DEGREES,
    ImageTransform,
    Operation,
    measure_transform,
    residual,
)
from darkroom.pipelines.vision.legibility import OcrReader, TextLine, anls, contrast, likeness, ocr_reader, plain
from darkroom.pipelines.vision.registration import degrees_between, pose_of

MAX_RESIDUAL = 3.0
"""Degrees by which an image may still lean."""

MIN_SHOWN = 0.4
"""Least share of the image that must be left. A square cut from a turned 3:2 image keeps about a half."""

_RE = Patterns(read_words(__file__))


@check()
def upright(case: Case) -> CheckResult:
    """The last image shown is the unrotated original, upright; ``score`` is how many degrees it still leans."""
    if not case.observed:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    output = case.store.open(case.observed[-1])
    original = case.store.open(case.sample.images[0])
    if (pose := pose_of(original, output)) is None:
        what = "mirrored" if pose_of(ImageOps.mirror(original.convert("RGB")), output) else "not this question's"
        return failed(Flaw.NOT_UPRIGHT, f"the image shown is {what}")
    residual = degrees_between(pose.angle, 0.0)
    detail, score = f"{residual:+.1f} degrees from upright", round(abs(residual), 1)
    if abs(residual) > MAX_RESIDUAL:
        return failed(Flaw.NOT_UPRIGHT, detail, score=score)
    parts = [("the picture", Box(0, 0, *original.size), MIN_SHOWN)]
    parts += [("the target", target.box, 0.95) for target in case.sample.truth.boxes[:1] if target.image == 0]
    for what, box, least in parts:
        if (share := pose.share_shown(box)) < least:
            return failed(Flaw.TARGET_CUT, f"upright, but shows {share:.0%} of {what}", score=score)
    return passed(detail, score=score)


@check()
def angle_undone(case: Case) -> CheckResult:
    """The program's turn and the one before it make a whole turn; ``score`` is the rest, in degrees."""
    if not case.observed:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    pose = pose_of(case.store.open(case.trajectory.images[0]), case.store.open(case.observed[-1]))
    if pose is None:
        return failed(Flaw.WRONG_ANGLE, "the image shown is no rotation of the one that was given")
    applied = float(case.hint["angle"])
    lacks = degrees_between(pose.angle + applied, 0.0)
    detail = f"turned by {pose.angle:.1f} degrees after {applied:g}: {lacks:+.1f} from a whole turn"
    return decided(abs(lacks) <= MAX_RESIDUAL, Flaw.WRONG_ANGLE, detail, score=round(abs(lacks), 1))


@check()
def angle_unspoken(case: Case) -> CheckResult:
    """No thought, comment, name or text in the code tells an angle, in figures or in words, nor does a file's name.

    What the question, its choices and its answer say may be said. In code, the two numbers that undo the turn may
    stand as numbers only.
    """
    public = " ".join([case.sample.question, *case.sample.choices, case.sample.answer]).casefold()
    for where, text in case.texts("a comment", _comments):
        mentions = [match[0] for pattern in (_RE.figures, _RE.words) for match in pattern.finditer(text) if match[1]]
        if leaked := [words for words in mentions if words.casefold() not in public]:
            return failed(Flaw.HINT_NUMBER, f"{where} says {leaked[0]!r}")
    angle = round(float(case.hint["angle"])) % 360
    # as people write a turn and what undoes it: the other way, and the rest of a whole one
    secret = {str(angle), str(360 - angle), str(360 + angle), str(720 - angle)}
    for where, text in _spelled(case):
        if leaked := sorted(secret.intersection(_RE.number.findall(_RE.ordinary.sub("", text)))):
            return failed(Flaw.HINT_NUMBER, f"{where} holds {leaked[0]}: {text[:60]!r}")
    return passed()


def _comments(code: str) -> str:
    return "\n".join(token.string for token in tokens(code) if token.type == tokenize.COMMENT)


def _spelled(case: Case) -> Iterator[tuple[str, str]]:
    """Names and texts of the code, and what it printed: file names among them."""
    for n, turn in enumerate(case.trajectory.rounds, 1):
        for token in tokens(turn.code):
            if token.type == tokenize.NAME:
                yield f"a name in round {n}", token.string
        tree = parsed(turn.code)  # None for code that does not parse, which fails `executes`
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"a text in round {n}", node.value
        yield f"what round {n} printed", turn.observation.text


MIN_GAIN = 0.05
"""By how much likeness of the text read, times the reader's confidence, must rise."""

MIN_FACTOR = 1.8
"""By how much RMS contrast and gradient must rise."""

MAX_LOSS = 0.1
"""How much less than before the part may look like the original's (correlation)."""

MARGIN = 10


@check()
def legibility_gain(case: Case) -> CheckResult:
    """The subject of the question can be read better after the last program than before; ``score`` is the gain.

    With a reader (extra ``ocr``) the text read must be the answer, if the reader can read it in the unfaded original;
    else contrast and gradient must have risen while the part still looks like the original's.
    """
    if not case.observed:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    images = (case.sample.images[0], case.trajectory.images[0], case.observed[-1])
    original, before, after = (case.store.open(image).convert("RGB") for image in images)
    boxes = [truth.box.grown(MARGIN) for truth in case.sample.truth.boxes if truth.image == 0]
    box = (boxes[0] if boxes else Box(0, 0, *original.size)).clipped(*original.size)
    parts = original.crop(box), before.crop(box), _part(after, original, box)
    if (engine := ocr_reader()) is not None and (verdict := _read(engine, case, *parts)):
        return verdict
    return _measured(*parts)


def _part(after: Image.Image, original: Image.Image, box: Box) -> Image.Image:
    """Part of the output that shows the box; the whole output where it cannot be placed."""
    if after.size == original.size and likeness(after.crop(box), original.crop(box)) >= MIN_LIKENESS:
        return after.crop(box)
    pose = pose_of(original, after)
    return pose.cut(after, box) if pose else after


def _read(
    engine: OcrReader, case: Case, original: Image.Image, before: Image.Image, after: Image.Image
) -> CheckResult | None:
    """The verdict by reading; None where the answer is no text that the reader can read in the original."""
    expected = spelled_answer(case.sample)
    similar, score_after, words = _legible(engine, after, expected)
    if similar < 1 and anls(engine.read(original), expected)[0] < 1:
        return None
    if similar < 1:
        return failed(Flaw.TEXT_MISREAD, f"read {words!r}, expected {expected!r}", score=round(similar, 3))
    _, score_before, _ = _legible(engine, before, expected)
    gain = round(score_after - score_before, 3)
    detail = f"a reader reads {words!r}: {score_before:.2f} before, {score_after:.2f} after"
    return decided(gain >= MIN_GAIN, Flaw.NO_LEGIBILITY_GAIN, detail, score=gain)


@check(version=2)
def print_can_be_read(case: Case) -> CheckResult:
    """A reader (extra ``ocr``) finds the answer in the last image, if it is print that it finds in the first."""
    engine, boxes, expected = ocr_reader(), case.sample.truth.boxes, plain(spelled_answer(case.sample))
    if engine is None or not boxes or not case.observed or "ocr" not in case.sample.category.casefold():
        return passed("no print is asked for" if engine else "no reader is installed")
    view, around = case.store.open(case.observed[-1]), boxes[0].box.grown(MARGIN)
    words, location = "", last_located(case)
    if location is not None and (part := around.intersection(location.box)).area:  # cheaper: print is mostly one line
        left, top, right, bottom = sides_in_view(view, location.box, part)
        line = view.crop((math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)))
        words = _words(engine.read(line, is_line=True))
    if expected not in plain(words):
        words = _words(engine.read(view))
    if expected in plain(words):
        return passed(f"read {words!r}")
    image = case.sample.images[boxes[0].image]
    original = case.store.open(image).crop(around.clipped(image.width, image.height))
    if expected not in plain(_words(engine.read(original))):
        return passed("the reader does not find it in the original either")
    return failed(Flaw.TEXT_MISREAD, f"read {words!r}, expected {expected!r}")


def _words(lines: Iterable[TextLine]) -> str:
    return " ".join(line.text for line in lines)


def _legible(engine: OcrReader, part: Image.Image, expected: str) -> tuple[float, float, str]:
    """Likeness of the read text to the known one, that times the reader's confidence, and the read text."""
    lines = engine.read(part)
    similarity, words = anls(lines, expected)
    confidence = max((line.confidence for line in lines if words and words.split()[0] in line.text), default=0.0)
    return similarity, similarity * confidence, words


def _measured(original: Image.Image, before: Image.Image, after: Image.Image) -> CheckResult:
    was, now = contrast(before), contrast(after)
    factor = min(now.rms / max(1e-4, was.rms), now.edges / max(1e-4, was.edges))
    looked, looks = likeness(before, original), likeness(after, original)
    detail = f"contrast {was.rms:.3f} to {now.rms:.3f}, likeness to the original {looked:.2f} to {looks:.2f}"
    gained = factor >= MIN_FACTOR and looks >= max(MIN_LIKENESS, looked - MAX_LOSS)
    return decided(gained, Flaw.NO_LEGIBILITY_GAIN, detail, score=round(factor, 2))


@check()
def operation_applied(case: Case) -> CheckResult:
    """The last image shows the operation that was decided; ``score`` counts the operations that it shows."""
    decided = Operation(case.hint["operation"])
    if (transform := _change(case)) is None:
        return failed(Flaw.OTHER_OPERATION, "what is shown has nothing in common with the question's image", score=0.0)
    applied = transform.operations
    n = float(len(applied))
    if len(applied) > 1 if decided is Operation.COMBINED else decided in applied:
        return passed(str(transform), score=n)
    return failed(Flaw.OTHER_OPERATION, f"decided {decided.name.lower()}, but it is {transform}", score=n)


def _effective(case: Case) -> bool:
    """Every operation that the last image shows has reached what is known to be its goal, and there is one."""
    transform = _change(case)
    reached = [_reached(case, transform, operation) for operation in transform.operations] if transform else []
    return bool(reached) and all(reached)


EFFECTIVE = JudgeQuestion("judge_effective", bundled_prompt("judge_effective"), _effective)


@judged(EFFECTIVE)
async def judge_effective(case: Case, judge: Judge) -> CheckResult:
    """A judge sees question, thought, code, images and answer and says that the work reached its goal."""
    rounds, images = case.trajectory.rounds, case.observed
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
    if not (rounds := [turn for turn in case.trajectory.rounds if turn.observation.images]):
        return None
    output, code = case.store.open(rounds[-1].observation.images[-1]), executed_code(rounds[-1])
    transforms = (
        measure_transform(output, case.store.open(image), literal_boxes(code, image.width, image.height))
        for image in case.trajectory.images
    )
    return next((transform for transform in transforms if transform is not None), None)


def _reached(case: Case, transform: ImageTransform, operation: Operation) -> bool:
    """Decide by the truth where there is one: upright, more contrast, the whole target in a small part."""
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
