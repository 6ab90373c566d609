"""The check on restored contrast, by a reader of print where one is installed and by contrast where not."""

from PIL import Image

from darkroom.pipelines.models.tasks import spelled_answer
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed
from darkroom.pipelines.vision.legibility import OcrReader, anls, contrast, likeness, ocr_reader
from darkroom.pipelines.vision.registration import pose_of

MIN_GAIN = 0.05
"""By how much likeness of the text read, times the reader's confidence, must rise."""

MIN_FACTOR = 1.8
"""By how much RMS contrast and gradient must rise."""

MIN_LIKENESS, MAX_LOSS = 0.3, 0.1
"""How much the part must look like the original's (correlation), and how much less than before it may."""

MARGIN = 10


@check()
def legibility_gain(case: Case) -> CheckResult:
    """The subject of the question can be read better after the last program than before; ``score`` is the gain.

    With a reader (extra ``ocr``) the text read must be the answer, if the reader can read it in the unfaded original;
    else contrast and gradient must have risen while the part still looks like the original's.
    """
    images = [image for turn in case.trajectory.rounds for image in turn.observation.images]
    if not images:
        return failed(Flaw.NO_IMAGE, "no program showed an image")
    original = case.store.open(case.sample.images[0]).convert("RGB")
    before = case.store.open(case.trajectory.images[0]).convert("RGB")
    after = case.store.open(images[-1]).convert("RGB")
    box = _box(case, original)
    parts = original.crop(box), before.crop(box), _part(after, original, box)
    engine = ocr_reader()
    if engine is not None and (verdict := _read(engine, case, *parts)):
        return verdict
    return _measured(*parts)


def _box(case: Case, original: Image.Image) -> Box:
    boxes = [truth.box for truth in case.sample.truth.boxes if truth.image == 0]
    return (boxes[0].grown(MARGIN) if boxes else Box(0, 0, *original.size)).clipped(*original.size)


def _part(after: Image.Image, original: Image.Image, box: Box) -> Image.Image:
    """Part of the output that shows the box; the whole output where it cannot be placed."""
    target = original.crop(box)
    if after.size == original.size and likeness(after.crop(box), target) >= MIN_LIKENESS:
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
