"""A pivot: one decision of a verified trajectory, what it led to, and what a next action has to show.

images, rounds   what the policy has seen: the question's images, and the rounds before
action           what the trajectory does next: code, or the answer
goal             what any next action has to reach there, with the facts that decide it
"""

from dataclasses import dataclass
from typing import Literal

from darkroom.pipelines.records.samples import ImageRef, TruthBox
from darkroom.pipelines.records.trajectories import Provenance, Round

Goal = Literal["target", "upright", "contrast", "answer"]
"""``target``: code that shows the target's box in a small part of the image. ``upright``: code that undoes the image's
turn. ``contrast``: code that brings out what is faint. ``answer``: the right answer, and no more code."""


@dataclass(frozen=True, slots=True)
class Action:
    """What a policy writes in one turn: a thought with code, or with an answer (the other is empty)."""

    thought: str
    code: str
    answer: str


@dataclass(frozen=True, slots=True)
class RejectedAction:
    """An action that was executed after the same prefix and does not reach the goal: ``flaw`` says why."""

    action: Action
    flaw: str
    family: str
    trajectory_id: str


@dataclass(frozen=True, slots=True)
class Pivot:
    """One decision. ``pivot_id`` is the digest of prefix and goal.

    Privileged, for the reward alone: ``boxes`` in pixels of ``reference`` (``images[0]`` where that is null),
    ``angle`` by which it was turned, ``gold``, and ``reference``, the image before the recipe turned or faded it.
    """

    pivot_id: str
    trajectory_id: str
    sample_id: str
    family: str
    protocol: str
    mode: str
    images: tuple[ImageRef, ...]
    rounds: tuple[Round, ...]
    action: Action
    goal: Goal
    evidence: str
    """What was measured of the action."""
    boxes: tuple[TruthBox, ...]
    angle: float | None
    reference: ImageRef | None
    gold: str
    rejected: tuple[RejectedAction, ...]
    provenance: Provenance
