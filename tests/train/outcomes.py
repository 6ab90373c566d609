"""Outcomes of rollouts, made by hand."""

from PIL import Image

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.models.messages import pixel_ref
from darkroom.pipelines.records import Grader, ImageRef, Observation, Round, Sample, Truth, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.train.rl.methods.base import GradedQuestion, RolloutOutcome

QUESTION_IMAGE = Image.new("RGB", (140, 112), (90, 90, 90))
CROP_IMAGE = Image.new("RGB", (56, 56), (220, 20, 20))
SAMPLE = Sample(
    "s0",
    "signs",
    "0",
    "CC0-1.0",
    (ImageRef("q", 140, 112, "RGB", "PNG"),),
    "What colour is it?",
    (),
    "red",
    Truth(),
    "x",
)
CROPS = "image.crop((56, 28, 112, 84)).save('crop.png')"


def looked(status="ok", code=CROPS, images=(CROP_IMAGE,), error=None):
    """A round with code, and what came back."""
    refs = tuple(pixel_ref(image) for image in images) if status == "ok" else ()
    return Round("I look.", code, Observation(status, "", refs, error))


def outcome(answer="red", *rounds, mode="free", protocol="thyme", sandbox_error=None, suitable=None, turns=None):
    """A rollout that ended in ``answer``; None for one that has none."""
    error = RowError(Reason.MALFORMED_TURN, "no answer") if answer is None else None
    if turns is None:
        said = [
            "<think>I look.\n<code>\n```python\nx\n```\n</code>" if not n else "<code>\n```python\nx\n```\n</code>"
            for n in range(len(rounds))
        ]
        begin = "" if rounds else "<think>"
        last = f"{begin}So it is.</think>\n<answer>{answer}</answer>" if answer is not None else "I do not know"
        turns = (*said, last)
    pixels = {pixel_ref(image).sha256: image for image in (CROP_IMAGE, QUESTION_IMAGE)}
    return RolloutOutcome(
        question=GradedQuestion(SAMPLE, Grader("text"), suitable),
        protocol=protocol,
        mode=mode,
        rollout=Rollout(tuple(rounds), "So it is.", answer or "", Usage(), error),
        turns=tuple(turns),
        question_images=(QUESTION_IMAGE,),
        pixels=pixels,
        n_tokens=10,
        sandbox_error=sandbox_error,
    )
