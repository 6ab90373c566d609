"""Rows of a shipped dataset as conversations that TRL trains on.

Two layouts of one trajectory, with the same words (``pipelines/layouts/trl.py``): ``turns``, where every observation is
a user turn, as GRPO has it, and ``inline``, one assistant turn with the observations inside, as Thyme has it.

Parts of an assistant turn say whether they are trained: ``{"type": "text", "text": "It says 42.", "train": True}``.
Observations and their markers never are. Images are ``{"type": "image"}``, in the order of ``images``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.layouts import turns as rendering
from pipelines.layouts.faults import Unrenderable
from pipelines.layouts.trl import inline_messages, messages_of
from pipelines.layouts.turns import Row
from train.faults import TrainFault

Layout = Literal["turns", "inline"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in TRL's form and the images that their placeholders stand for, in order."""

    messages: list[dict[str, Any]]
    images: list[Any]


def conversation(row: Row, *, layout: Layout) -> Conversation:
    """The whole trajectory of ``row``. Raises ``TrainFault`` with the row's id when the row contradicts itself."""
    with _faults_of(row):
        turns = rendering.turns(row)
    messages = messages_of(turns) if layout == "turns" else inline_messages(turns)
    return Conversation(messages, list(row["images"] or []))


def opening(row: Row) -> list[dict[str, Any]]:
    """The conversation before the model's first turn, as GRPO prompts with it."""
    with _faults_of(row):
        return messages_of(rendering.opening(row))


@contextmanager
def _faults_of(row: Row) -> Iterator[None]:
    try:
        yield
    except Unrenderable as fault:
        raise TrainFault(f"row {row['trajectory_id']}: {fault.evidence}") from fault
