"""What came of a rollout in training: the record of the loop, its images, and why it may not count.

Rewards, metrics and sample pages read this and nothing of TRL's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image

from pipelines.digest import digest_bytes
from pipelines.records import ImageRef
from pipelines.rollout import Rollout
from train.rollouts.prompts import Asked


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rollout of a group."""

    asked: Asked
    protocol: str
    mode: str
    rollout: Rollout
    turns: tuple[str, ...]
    """What the model wrote, turn by turn."""
    question_images: tuple[Image.Image, ...]
    pixels: Mapping[str, Image.Image]
    """The images that programs showed, by ``ImageRef.sha256``."""
    n_tokens: int
    """That the model wrote."""
    seconds: float = 0.0
    """That its programs took."""
    sandbox_fault: str | None = None
    """Why the sandbox could not execute one of its programs, or lost its session."""

    @property
    def question_refs(self) -> tuple[ImageRef, ...]:
        """The question's images, digested as those that programs showed."""
        return tuple(pixel_ref(image) for image in self.question_images)

    @property
    def text(self) -> str:
        """All that the model wrote, without observations."""
        return "\n".join(self.turns)

    @property
    def answer(self) -> str | None:
        """None where the rollout has none: malformed, cut off, in circles, or out of rounds."""
        return None if self.rollout.fault is not None else self.rollout.answer

    @property
    def thought(self) -> str:
        """All thoughts, in order."""
        return "\n".join([turn.thought for turn in self.rollout.rounds] + [self.rollout.final_thought])

    @property
    def n_calls(self) -> int:
        """Programs that were executed."""
        return len(self.rollout.rounds)

    @property
    def n_ok(self) -> int:
        """Programs that ran without error."""
        return sum(turn.observation.status == "ok" for turn in self.rollout.rounds)

    @property
    def used_tool(self) -> bool:
        """Whether any program was executed."""
        return bool(self.rollout.rounds)

    @property
    def shown(self) -> tuple[ImageRef, ...]:
        """All images that programs showed, in order."""
        return tuple(image for turn in self.rollout.rounds for image in turn.observation.images)

    def failed(self, statuses: frozenset[str]) -> str | None:
        """Why the rollout is broken (PyVision-RL algorithm 1): the sandbox's own fault, or a program that ended so."""
        if self.sandbox_fault is not None:
            return self.sandbox_fault
        for number, turn in enumerate(self.rollout.rounds, start=1):
            if turn.observation.status in statuses:
                return f"program {number}: {turn.observation.status}: {turn.observation.error or 'no error text'}"
        return None


def pixel_ref(image: Image.Image) -> ImageRef:
    """An image of no store, by the digest of its pixels, as the sandbox shows them: RGB."""
    plain = image.convert("RGB")
    return ImageRef(digest_bytes(plain.tobytes()), plain.width, plain.height, plain.mode, "PNG")
