"""Agentic image: the policy talks with a Python that has the images open until it answers (PyVision-RL §3.1, §3.4).

It is told nothing beyond the question. Kept are rows with the right answer, at least two tool turns and no broken one,
as the paper's SFT data were filtered. A target that fills more than ``MAX_TARGET_SHARE`` of its image is unsuitable:
there one look is enough.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.answers import split_choice
from pipelines.checks import answer_matches, has_tool_turns, hint_stays_hidden, no_round_is_broken
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import PyVision
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared

MAX_TARGET_SHARE = 0.1
MARGIN = 0.3
"""How far the oracle's zoom reaches beyond the target, as a share of the target's longer side."""
OVERVIEW_SIDE, READABLE_SIDE = 800, 600


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The images as they are, and no hint."""
    if not sample.images or sample.videos:
        raise RowFault(Reason.NOT_APPLICABLE, "the question is not about images alone")
    for target in sample.truth.boxes[:1]:
        image = sample.images[target.image]
        share = target.box.area / (image.width * image.height)
        if share > MAX_TARGET_SHARE:
            raise RowFault(
                Reason.UNSUITABLE, f"the target fills {share:.1%} of the image, more than {MAX_TARGET_SHARE:.0%}"
            )
    return Prepared(sample.images)


def script(turn: Turn) -> str:
    """The oracle: the whole, the part that matters, sometimes that part made clearer, then the answer."""
    looks = [_overview, _zoom]
    if turn.task.sample.truth.boxes and random.Random(turn.task.seed).random() < 1 / 3:
        looks.append(_enhance)
    if len(turn.rounds) == len(looks):
        return _answer(turn)
    # seed_from gives every turn its own seed: its words don't depend on the other turns'
    return looks[len(turn.rounds)](turn, random.Random(turn.seed))


def _overview(turn: Turn, draw: random.Random) -> str:
    thought = draw.choice(_FIRST).format(label=_label(turn.task.sample))
    return PyVision().write_round(thought, _OVERVIEW.format(n=_index(turn), side=OVERVIEW_SIDE), first=True)


def _zoom(turn: Turn, draw: random.Random) -> str:
    region = _region(turn.task.sample)
    if region is None:
        return PyVision().write_round(draw.choice(_WHOLE), _CLEARER_WHOLE.format(n=_index(turn)), first=False)
    thought = draw.choice(_CLOSER).format(label=_label(turn.task.sample))
    scale = min(8, max(1, round(READABLE_SIDE / max(region.width, region.height))))
    code = _ZOOM.format(n=_index(turn), label=_label(turn.task.sample), box=tuple(region), scale=scale)
    return PyVision().write_round(thought, code, first=False)


def _enhance(turn: Turn, draw: random.Random) -> str:
    thought = draw.choice(_SURE).format(label=_label(turn.task.sample))
    return PyVision().write_round(thought, draw.choice((_CONTRAST, _SHARPER)), first=False)


def _answer(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    seen = dict(map(split_choice, sample.choices))[sample.answer] if sample.choices else sample.answer
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    thought = draw.choice(_SHOWS).format(label=_label(sample), seen=seen)
    return PyVision().write_answer(f"{thought}{closing}", sample.answer, first=False)


def _index(turn: Turn) -> int:
    boxes = turn.task.sample.truth.boxes
    return boxes[0].image if boxes else 0


def _region(sample: Sample) -> Box | None:
    """What to zoom in on: the target with its surroundings; None where no target is known."""
    if not sample.truth.boxes:
        return None
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    margin = max(12, round(MARGIN * max(target.box.width, target.box.height)))
    return target.box.grown(margin).clipped(image.width, image.height)


def _label(sample: Sample) -> str:
    """What the target is called, on one line."""
    label = sample.truth.boxes[0].label if sample.truth.boxes else ""
    return " ".join(label.split()) or "detail in question"


_FIRST = (
    "Let me look at the whole picture first, to see where the {label} could be.",
    "I start with an overview: how large the picture is, and where in it the {label} might be.",
    "Before I judge the {label}, I want to see how the picture is laid out.",
)
_CLOSER = (
    "In the overview I can tell where the {label} is, but not what it shows. I cut that part out and enlarge it.",
    "The {label} is too small at this scale, so I zoom in on its place in the full-resolution image.",
    "Now that I know the place, I look at the {label} at a size at which it can be read.",
)
_WHOLE = (
    "The question is about the picture as a whole. I raise the contrast and look again before I decide.",
    "Nothing here asks for a crop, but a clearer version of the whole picture should remove the doubt.",
)
_SURE = (
    "I think I can make the {label} out, but I want to be sure: the same part again, made clearer.",
    "It is almost certain. A clearer version of this part will confirm what the {label} shows.",
)
_SHOWS = (
    "The enlarged view settles it. The {label}: {seen}.",
    "Now it is plain to see: {seen}.",
    "With this look at the {label} the answer is clear: {seen}.",
)
_OVERVIEW = """\
import matplotlib.pyplot as plt

image = image_clue_{n}.convert("RGB")
print(image.size)
overview = image.copy()
overview.thumbnail(({side}, {side}))
plt.figure(figsize=(8, 8 * image.height / image.width))
plt.imshow(overview)
plt.axis("off")
plt.show()"""
_ZOOM = """\
import matplotlib.pyplot as plt
from PIL import Image

# the {label} and what is around it
part = image_clue_{n}.convert("RGB").crop({box})
part = part.resize((part.width * {scale}, part.height * {scale}), Image.LANCZOS)
plt.figure(figsize=(6, 6 * part.height / part.width))
plt.imshow(part)
plt.axis("off")
plt.show()"""
_CLEARER_WHOLE = """\
import matplotlib.pyplot as plt
from PIL import ImageOps

clearer = ImageOps.autocontrast(image_clue_{n}.convert("RGB"), cutoff=1)
plt.figure(figsize=(8, 8 * clearer.height / clearer.width))
plt.imshow(clearer)
plt.axis("off")
plt.show()"""
_AGAIN = """\
plt.figure(figsize=(6, 6 * clearer.height / clearer.width))
plt.imshow(clearer)
plt.axis("off")
plt.show()"""
_CONTRAST = f"""\
import matplotlib.pyplot as plt
from PIL import ImageOps

clearer = ImageOps.autocontrast(part, cutoff=1)
{_AGAIN}"""
_SHARPER = f"""\
import matplotlib.pyplot as plt
from PIL import ImageEnhance

clearer = ImageEnhance.Sharpness(part).enhance(2.0)
{_AGAIN}"""

recipe = Recipe(
    family="agentic_image",
    description="Agentic image: the policy works on the image in a Python runtime until it answers (PyVision-RL §3.1).",
    file=Path(__file__),
    prompt=bundled_prompt("agentic_image"),
    protocol=PyVision(),
    prepare=prepare,
    script=script,
    checks=(answer_matches, has_tool_turns, no_round_is_broken, hint_stays_hidden),
    loss_policy="all_rounds",
)
