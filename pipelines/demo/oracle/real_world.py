"""The oracle of ``real_world``: the plan, the operations that the truth asks for in one program, what it shows."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import (
    closing_of,
    enlargement,
    family_script,
    label_of,
    obstacles,
    operation_plan,
    place_of,
)
from pipelines.generation.recipes import target_region
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme
from pipelines.models.tasks import spelled_answer
from pipelines.records import Sample
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.vision.image_transform import Operation


def _operate(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.task.seed)
    operations, label = _operations(sample), label_of(sample)
    place = place_of(target_region(sample), sample) if Operation.REGION in operations else ""
    issues = " ".join(rng.choice(_ISSUES[operation]) for operation in operations).format(label=label, place=place)
    then = " ".join(rng.choice(_THEN[operation]) for operation in operations).format(label=label, place=place)
    slots = _code_slots(sample, operations)
    steps = [rng.choice(_STEPS[operation]).format(**slots) for operation in reversed(operations)]
    code = "\n".join([_OPEN, *steps, rng.choice(_SAVE)])
    return Thyme().write_round(f"{issues} {then}", code, first=True)


def _operations(sample: Sample) -> tuple[Operation, ...]:
    """Raises ``RowError`` (wrong_plan) where another policy planned and the truth has no obstacle."""
    operations = obstacles(sample)
    if not operations:
        raise RowError(Reason.WRONG_PLAN, "the oracle knows of nothing that this image needs")
    return operations


def _code_slots(sample: Sample, operations: tuple[Operation, ...]) -> dict[str, object]:
    """A crop comes before a turn, so that its box is the original's."""
    slots: dict[str, object] = {"back": f"{-(sample.truth.angle or 0) % 360:g}"}
    if Operation.REGION in operations:
        region = target_region(sample)
        slots |= {"box": tuple(region), "scale": enlargement(region)}
    return slots


def _answer(turn: CompletionRequest) -> str:
    sample, rng = turn.task.sample, random.Random(turn.seed)
    effect = rng.choice(_WORKED[_operations(sample)[0]]).format(label=label_of(sample))
    shows = rng.choice(_SHOWS).format(seen=spelled_answer(sample))
    return Thyme().write_answer(f"{effect} {shows}{closing_of(sample)}", sample.answer, first=False)


script = family_script(_operate, _answer, plan=operation_plan)


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
