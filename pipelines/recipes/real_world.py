"""Real world: the policy decides what the image needs, does it in one program, looks and answers (Thyme appendix B).

The operation is the policy's own decision (``pipelines/decision.py``; table 9): direction, lighting, region, or
several. Nothing privileged is told and no image is altered: what is wrong with an image came with it. Samples that can
be answered directly are not applicable.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.change import Operation
from pipelines.checks import (
    Necessity,
    answer_matches,
    consistency,
    executes,
    hint_stays_hidden,
    judge_effective,
    operation_applied,
    shows_an_image,
)
from pipelines.closeups import closeup, closing_of, enlargement, label_of, place_of, seen_in
from pipelines.decision import plan
from pipelines.images import ImageStore
from pipelines.obstacles import obstacles
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The images as they are."""
    if not sample.images:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image")
    return Prepared(sample.images)


def script(turn: Turn) -> str:
    """The oracle: the operation, then what it shows."""
    return _work(turn) if not turn.rounds else _answer(turn)


def _work(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.task.seed)
    found = _known_obstacles(sample)
    slots = {"label": label_of(sample), "place": place_of(closeup(sample), sample) if Operation.REGION in found else ""}
    issues = " ".join(draw.choice(_ISSUES[operation]) for operation in found).format(**slots)
    then = " ".join(draw.choice(_THEN[operation]) for operation in found).format(**slots)
    steps = [draw.choice(_STEPS[operation]).format(**_numbers(sample, found)) for operation in reversed(found)]
    code = "\n".join([_OPEN, *steps, draw.choice(_SAVE)])
    return Thyme().write_round(f"{issues} {then}", code, first=True)


def _known_obstacles(sample: Sample) -> tuple[Operation, ...]:
    """Raises ``RowFault`` (wrong_plan) where another policy decided and the truth knows of nothing to do."""
    found = obstacles(sample)
    if not found:
        raise RowFault(Reason.WRONG_PLAN, "the oracle knows of nothing that this image needs")
    return found


def _numbers(sample: Sample, found: tuple[Operation, ...]) -> dict[str, object]:
    """What the programs need; a crop comes before a turn, so that its box is the original's."""
    numbers: dict[str, object] = {"back": f"{-(sample.truth.angle or 0) % 360:g}"}
    if Operation.REGION in found:
        region = closeup(sample)
        numbers |= {"box": tuple(region), "scale": enlargement(region)}
    return numbers


def _answer(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    worked = draw.choice(_WORKED[_known_obstacles(sample)[0]]).format(label=label_of(sample))
    shows = draw.choice(_SHOWS).format(seen=seen_in(sample))
    return Thyme().write_answer(f"{worked} {shows}{closing_of(sample)}", sample.answer, first=False)


_ISSUES = {
    Operation.DIRECTION: (
        "The picture does not stand upright: what should be on top points elsewhere.",
        "This image was saved the wrong way round, so directions and writing in it cannot be trusted.",
        "Everything in this picture is turned away from its natural position.",
    ),
    Operation.LIGHTING: (
        "The tones of the image are squeezed into a narrow range, so that shapes and letters hardly stand out.",
        "It is badly lit: there is almost no difference between its darkest and its brightest parts.",
        "The contrast is far too low to be sure of what it shows.",
    ),
    Operation.REGION: (
        "The {label} that the question is about is tiny in this large picture, somewhere near the {place}.",
        "In the full view the {label} near the {place} is too small to be read.",
        "What matters is the {label}, a small detail towards the {place} among many others.",
    ),
}
_THEN = {
    Operation.DIRECTION: ("I turn it until it is upright.", "Rotating it back puts that right."),
    Operation.LIGHTING: ("I stretch its grey levels over the full range.", "Raising the contrast should bring it out."),
    Operation.REGION: ("I cut that part out and enlarge it.", "Cropping there and enlarging the crop should help."),
}
_OPEN = """\
from PIL import Image, ImageOps
import numpy as np
import random

image = Image.open(image_path).convert("RGB")"""
_STEPS = {
    Operation.DIRECTION: (
        "# turn it upright; PIL turns counter-clockwise\nimage = image.rotate({back}, expand=True)",
        "# put it the right way up, keeping the corners\nangle = {back}\nimage = image.rotate(angle, expand=True)",
    ),
    Operation.LIGHTING: (
        "# spread the tones over the full range\nimage = ImageOps.autocontrast(image, cutoff=1)",
        "# stretch the levels between the darkest and the brightest\n"
        "pixels = np.asarray(image).astype(float)\n"
        "low, high = np.percentile(pixels, [1, 99])\n"
        "pixels = np.clip((pixels - low) / max(high - low, 1) * 255, 0, 255)\n"
        "image = Image.fromarray(pixels.astype(np.uint8))",
    ),
    Operation.REGION: (
        "# only the part that matters, enlarged\n"
        "image = image.crop({box})\n"
        "image = image.resize((image.width * {scale}, image.height * {scale}), Image.LANCZOS)",
        "# look closer at one part\n"
        "crop_box = {box}\n"
        "image = image.crop(crop_box)\n"
        "image = image.resize((image.width * {scale}, image.height * {scale}), Image.BICUBIC)",
    ),
}
_SAVE = (
    'processed_path = f"/mnt/data/temp_processed_images/view_{random.randint(1000, 9999)}.png"\n'
    "image.save(processed_path)\nprint(processed_path)",
    "suffix = random.randint(1000, 9999)\n"
    'processed_path = f"/mnt/data/temp_processed_images/processed_{suffix}.png"\n'
    "image.save(processed_path)\nprint(processed_path)",
)
_WORKED = {
    Operation.DIRECTION: (
        "Now the picture is the right way up and can be read as it was meant.",
        "Upright, everything is in its proper place.",
    ),
    Operation.LIGHTING: (
        "With the tones spread out, the shapes stand out clearly.",
        "The result is far easier to read than the image was.",
    ),
    Operation.REGION: (
        "The enlarged part shows the {label} clearly.",
        "Enlarged like this, the {label} is easy to make out.",
    ),
}
_SHOWS = (
    "What it shows is this: {seen}.",
    "So the answer can be read off: {seen}.",
    "That settles the question: {seen}.",
)

recipe = Recipe(
    family="real_world",
    description="The policy decides what the image needs, does it in code, looks and answers (Thyme App. B, table 9).",
    file=Path(__file__),
    prompt=bundled_prompt("real_world"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(
        executes,
        shows_an_image,
        operation_applied,
        answer_matches,
        hint_stays_hidden,
        consistency,
        judge_effective,
    ),
    max_rounds=1,
    plan=plan(keeps=lambda decided: decided.needs_work),
    n_wanted=50_000,
    necessity=Necessity(),
)
