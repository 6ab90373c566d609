"""Rotation: the image is turned, the policy turns it back and answers (Thyme appendix B, Coding Data 2; table 11).

``prepare`` turns the image by a seeded angle; the policy receives it and the rotation that undoes it, which may show in
the code only, as a number. Images whose turn cannot be seen or measured are unsuitable.
"""

import math
import random
from pathlib import Path

from PIL import Image

from darkroom.pipelines.generation.applicability import Applicability
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import ImageRef, Sample, TruthBox
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import on_white
from darkroom.pipelines.verification.checks import answer_matches, executes, hint_stays_hidden, shows_an_image
from darkroom.pipelines.verification.checks.image_operations import angle_undone, angle_unspoken, upright
from darkroom.pipelines.vision.registration import degrees_between, pose_of
from darkroom.pipelines.vision.visibility import orientation

ANGLES = range(30, 336)
"""Degrees counter-clockwise: Thyme's range. What table 11 rules out is half a turn as the *sum* of turn and correction,
which ``angle_undone`` measures; an image that is upside down is undone like any other."""

CANVASES = ("expanded", "cropped")
"""What happens to the corners: the canvas grows to hold them, or keeps the image's size and cuts them off."""

MAX_SIDE = 2048
"""Pixels. Turned and expanded, a larger image is shrunk by the models until its small things are lost."""

FILLS = ((0, 0, 0), (255, 255, 255), (124, 124, 124))


def prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """The image turned; the angle, and the one that undoes it, as the hint."""
    image = sample.images[0]
    if max(image.width, image.height) > MAX_SIDE:
        raise RowError(Reason.UNSUITABLE, f"{image.width}x{image.height} pixels: longer than {MAX_SIDE}")
    if sample.truth.angle:
        raise RowError(Reason.UNSUITABLE, f"the image is turned by {sample.truth.angle:g} degrees already")
    upright_image = on_white(store.open(image)).convert("RGB")
    if not (cues := orientation(upright_image)).visible:
        raise RowError(Reason.UNSUITABLE, f"one cannot see that it is turned: {cues.words}")
    rng = random.Random(seed_from("rotation", sample.sample_id))
    angle, canvas, fill = rng.choice(ANGLES), rng.choice(CANVASES), rng.choice(FILLS)
    if canvas == "cropped" and not _keeps(sample.truth.boxes, image, angle):
        canvas = "expanded"
    turned = upright_image.rotate(angle, Image.Resampling.BICUBIC, expand=canvas == "expanded", fillcolor=fill)
    pose = pose_of(upright_image, turned)
    if pose is None or abs(degrees_between(pose.angle, angle)) > 1:
        measured = "nothing" if pose is None else f"{pose.angle:.1f} degrees"
        raise RowError(Reason.UNSUITABLE, f"its turn by {angle} degrees cannot be measured: found {measured}")
    made_by = f"rotation: turned by {angle} degrees, canvas {canvas}, fill {fill}"
    rotated = store.add_pixels(turned, parent=image.sha256, made_by=made_by)
    return PreparedSample((rotated, *sample.images[1:]), {"angle": angle, "correction": 360 - angle})


def _keeps(boxes: tuple[TruthBox, ...], image: ImageRef, angle: int) -> bool:
    """True if a canvas of the image's size still holds the target; an unknown target may be anywhere."""
    if not boxes or boxes[0].image != 0:
        return False
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    middle_x, middle_y = image.width / 2, image.height / 2
    box = boxes[0].box
    corners = [(x - middle_x, y - middle_y) for x in (box.x1, box.x2) for y in (box.y1, box.y2)]
    return all(abs(x * cos + y * sin) < middle_x and abs(y * cos - x * sin) < middle_y for x, y in corners)


recipe = Recipe(
    family="rotation",
    description="Rotation: the image is turned, the policy turns it upright and answers (Thyme App. B, table 11).",
    file=Path(__file__),
    prompt=bundled_prompt("rotation"),
    protocol=Thyme(),
    samples=Applicability(images=True, also="upright, at most 2,048 pixels a side, its turn can be seen and measured"),
    prepare=prepare,
    checks=(executes, shows_an_image, upright, angle_undone, answer_matches, hint_stays_hidden, angle_unspoken),
    n_wanted=14_000,
)
