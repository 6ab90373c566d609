"""How the embedded policy answers without tools: by what can be seen at first sight, else by a guess.

It stands in for a model, so that necessity (``pipelines/checks/necessity.py``) is seen at work without one. An image
can be read at first sight when nothing is known to stand in the way and the recipe has not altered it.
"""

from __future__ import annotations

import random

from pipelines.answers import split_choice
from pipelines.obstacles import obstacles
from pipelines.policies.base import Turn


def script(turn: Turn) -> str:
    """The answer that can be seen, or one of the choices by chance, or none."""
    sample = turn.task.sample
    if sample.images and turn.task.images == sample.images and not obstacles(sample):
        return f"<answer>{sample.answer}</answer>"
    if sample.choices:
        letters = [split_choice(choice)[0] for choice in sample.choices]
        return f"<answer>{random.Random(turn.seed).choice(letters)}</answer>"
    return "<answer>I cannot tell</answer>"
