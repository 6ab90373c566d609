"""The oracle of ``agentic_image``: the whole, the part that matters, sometimes that part made clearer, the answer."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import answer_turn, enlargement, family_script, label_of
from pipelines.generation.recipes import with_margin
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import PyVision
from pipelines.records import Sample
from pipelines.records.geometry import Box

MARGIN = 0.3
"""How far the zoom reaches beyond the target, as a share of the target's longer side."""
OVERVIEW_SIDE, READABLE_SIDE = 800, 600


def _look_or_answer(turn: CompletionRequest) -> str:
    looks = [_overview, _zoom]
    if turn.task.sample.truth.boxes and random.Random(turn.task.seed).random() < 1 / 3:
        looks.append(_enhance)
    if len(turn.rounds) == len(looks):
        return answer_turn(turn, PyVision(), _SHOWS)
    # seed_from gives every turn its own seed: its words don't depend on the other turns'
    return looks[len(turn.rounds)](turn, random.Random(turn.seed))


def _overview(turn: CompletionRequest, rng: random.Random) -> str:
    thought = rng.choice(_FIRST).format(label=label_of(turn.task.sample))
    return PyVision().write_round(thought, _OVERVIEW.format(n=_index(turn), side=OVERVIEW_SIDE), first=True)


def _zoom(turn: CompletionRequest, rng: random.Random) -> str:
    region, label = _region(turn.task.sample), label_of(turn.task.sample)
    if region is None:
        return PyVision().write_round(rng.choice(_WHOLE), _CLEARER_WHOLE.format(n=_index(turn)), first=False)
    thought, scale = rng.choice(_CLOSER).format(label=label), enlargement(region, readable_side=READABLE_SIDE)
    code = _ZOOM.format(n=_index(turn), label=label, box=tuple(region), scale=scale)
    return PyVision().write_round(thought, code, first=False)


def _enhance(turn: CompletionRequest, rng: random.Random) -> str:
    thought = rng.choice(_SURE).format(label=label_of(turn.task.sample))
    return PyVision().write_round(thought, rng.choice((_CONTRAST, _SHARPER)), first=False)


def _index(turn: CompletionRequest) -> int:
    boxes = turn.task.sample.truth.boxes
    return boxes[0].image if boxes else 0


def _region(sample: Sample) -> Box | None:
    """The target with its surroundings; None where no target is known."""
    if not sample.truth.boxes:
        return None
    target = sample.truth.boxes[0]
    return with_margin(target.box, sample.images[target.image], margin=MARGIN, min_pixels=12)


script = family_script(_look_or_answer)


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
