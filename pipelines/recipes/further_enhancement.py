"""Further enhancement: a generous crop first, then the exact one, explained by what the first showed (Thyme App. B).

The first region is seeded: it holds the whole target, is several times as large as the exact region, and is never the
whole image. The policy is told it at the start and the exact one beside the first observation; the trajectory shows
neither.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

from pipelines.checks import (
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    first_crop_is_generous,
    hint_stays_hidden,
    second_round_is_explained,
    shows_an_image,
    two_programs,
)
from pipelines.closeups import as_text, closeup, closing_of, crop_program, from_text, label_of, place_of, seen_in
from pipelines.digest import seed_from
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Round, Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared, Task

GENEROSITY = (4.0, 10.0)
"""How many times the exact region's area the first region has."""

MIN_GENEROSITY = 2.0
"""What is left of it at the image's borders; less is no generous region."""

MAX_SHARE = 0.5
"""The first region is at most this share of the image."""

NEXT = (
    "Say what this crop shows and why it has to be closer, then write the second program.\n"
    "Region for the second program, in the original image (left, upper, right, lower): {region}"
)
"""What the policy is told beside the first observation; here, so that the recipe's digest covers it."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image as it is; the generous and the exact region as the hint."""
    exact = closeup(sample)
    draw = random.Random(seed_from("further_enhancement", sample.sample_id))
    first = generous(exact, sample.images[0].width, sample.images[0].height, draw)
    return Prepared(sample.images, {"first_region": as_text(first), "region": as_text(exact)})


def generous(exact: Box, width: int, height: int, draw: random.Random) -> Box:
    """A region around ``exact`` with ``GENEROSITY`` times its area, placed by chance, inside the image.

    Raises ``RowFault`` (unsuitable) where the image leaves no room for ``MIN_GENEROSITY``.
    """
    side = math.sqrt(draw.uniform(*GENEROSITY))
    most = math.sqrt(MAX_SHARE)
    wide = min(round(exact.width * side), int(width * most))
    high = min(round(exact.height * side), int(height * most))
    if wide < exact.width or high < exact.height or wide * high < MIN_GENEROSITY * exact.area:
        raise RowFault(Reason.UNSUITABLE, f"a {width}x{height} image has no room for a generous crop around {exact}")
    x = draw.randint(max(0, exact.x2 - wide), min(exact.x1, width - wide))
    y = draw.randint(max(0, exact.y2 - high), min(exact.y1, height - high))
    return Box(x, y, x + wide, y + high)


def follow_up(task: Task, rounds: tuple[Round, ...]) -> str:
    """The exact region, beside the first observation."""
    return NEXT.format(region=task.hint["region"]) if len(rounds) == 1 else ""


def script(turn: Turn) -> str:
    """The oracle: the generous crop, the exact one, the answer."""
    return (_first, _second, _answer)[min(len(turn.rounds), 2)](turn)


def _first(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.task.seed)
    region = from_text(turn.task.hint["first_region"])
    slots = {"label": label_of(sample), "place": place_of(region, sample)}
    thought = f"{draw.choice(_WHY)} {draw.choice(_WIDE)}".format(**slots)
    return Thyme().write_round(thought, crop_program(region, label=label_of(sample), draw=draw), first=True)


def _second(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    region = from_text(turn.task.hint["region"])
    thought = f"{_seen(turn, draw)} {draw.choice(_CLOSER)}".format(label=label_of(sample))
    return Thyme().write_round(thought, crop_program(region, label=label_of(sample), draw=draw), first=False)


def _seen(turn: Turn, draw: random.Random) -> str:
    """What the first round really gave: nothing, or a crop in which the target is where it is."""
    if not turn.rounds[0].observation.images:
        return "That gave no picture at all, so I still have not seen the {label}."
    first, target = from_text(turn.task.hint["first_region"]), turn.task.sample.truth.boxes[0].box
    middle = (target.x1 + target.x2) / 2
    third = min(2, max(0, int(3 * (middle - first.x1) / first.width)))
    where = ("on the left", "near the middle", "on the right")[third]
    parts = round(first.width / target.width)
    size = "less than half" if parts <= 2 else f"about one {_PARTS[min(parts, len(_PARTS) + 2) - 3]}"
    return f"{draw.choice(_FOUND)} {where} of this view, but it takes up only {size} of its width."


def _answer(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    shows = draw.choice(_SHOWS).format(label=label_of(sample), seen=seen_in(sample))
    return Thyme().write_answer(f"{shows}{closing_of(sample)}", sample.answer, first=False)


_WHY = (
    "The {label} that the question is about is a small detail of this large picture.",
    "I cannot make out the {label} in the full view, it is too small.",
    "To answer this I have to see the {label}, which is tiny at this size.",
)
_WIDE = (
    "It should be somewhere around the {place}; I begin with a wide crop there, to be sure not to cut it.",
    "I will first take a roomy part near the {place} and see where exactly it is.",
    "A generous crop around the {place} should contain it.",
)
_FOUND = ("The crop does hold the {label}: it is", "The right area. The {label} can be seen", "I find the {label}")
_CLOSER = (
    "There is too much around it to read it reliably, so I crop the original again, close around it, and enlarge that.",
    "That is still too small for a safe answer. I narrow the region down to the {label} alone.",
    "A tighter crop will leave out what does not matter and show the {label} larger.",
)
_PARTS = ("third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SHOWS = (
    "The tighter crop shows the {label} large enough to read: {seen}.",
    "Now only the {label} is left in view, and it is clear: {seen}.",
    "This time the {label} can be made out without doubt: {seen}.",
)

recipe = Recipe(
    family="further_enhancement",
    description="Two rounds: a generous crop, then the exact one, explained by the first (Thyme App. B, multi-round).",
    file=Path(__file__),
    prompt=bundled_prompt("further_enhancement"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(
        executes,
        two_programs,
        shows_an_image,
        first_crop_is_generous,
        crop_contains_target,
        crop_is_tight,
        second_round_is_explained,
        answer_matches,
        hint_stays_hidden,
    ),
    max_rounds=2,
    follow_up=follow_up,
)
