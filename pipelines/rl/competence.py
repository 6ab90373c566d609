"""How well the embedded student does on a sample, without tools and with them: a share of its answers, 0..1.

It is drawn from the sample's id, so that pass rates of every kind come about: some samples are never solved, some
always, most are in between. What is tiny in its image is seen less well, and gains from a closer look.
"""

from __future__ import annotations

from random import Random

from pipelines.digest import seed_from
from pipelines.records import Sample
from pipelines.worked import details_of

NEVER = ALWAYS = 0.12
"""Shares of the samples that are never and always answered rightly."""
LOWEST, HIGHEST = 0.2, 0.8
TINY, LARGE = 0.004, 0.06
"""Shares of the image that a target covers."""
_SEEN_OF_TINY, _GAINED_UP_CLOSE, _KEPT_OF_LARGE = 0.5, 0.7, 0.9
_GAINED_BY_DRAWING = 0.3


def competence(sample: Sample) -> float:
    """The share of answers without tools that are right; trivial questions are always answered."""
    if details_of(sample).get("planted") == "trivial":
        return 1.0
    place = Random(seed_from("rl/competence", sample.sample_id)).random()
    if place < NEVER:
        return 0.0
    if target_share(sample) < TINY:
        return _SEEN_OF_TINY * _middle(min(place, 1 - ALWAYS))
    return 1.0 if place >= 1 - ALWAYS else _middle(place)


def competence_with_tools(sample: Sample) -> float:
    """The same after a closer look at an image, or after a drawing where there is none."""
    without = competence(sample)
    if not sample.images:
        return _raised(without, _GAINED_BY_DRAWING) if details_of(sample).get("suitable") else without
    share = target_share(sample)
    if share < TINY:
        return _raised(without, _GAINED_UP_CLOSE)
    return _KEPT_OF_LARGE * without if share >= LARGE else without


def target_share(sample: Sample) -> float:
    """How much of its image the first target covers; 1.0 where none is known."""
    if not sample.truth.boxes or not sample.images:
        return 1.0
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    return target.box.area / (image.width * image.height)


def _middle(place: float) -> float:
    return LOWEST + (HIGHEST - LOWEST) * (place - NEVER) / (1 - NEVER - ALWAYS)


def _raised(share: float, gain: float) -> float:
    return share + gain * (1 - share)
