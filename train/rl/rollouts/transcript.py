"""A rollout as tokens: what the model wrote, and what the sandbox showed as it reads it.

Tokens are never decoded and encoded again: the sampled tokens are the trained ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from darkroom.pipelines.models.messages import Part, Text
from darkroom.pipelines.publishing.layouts.text import plain
from darkroom.train.rl.rollouts.sampling import Ending

TURN_END = "<|im_end|>"
_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


@dataclass(slots=True)
class Transcript:
    """``mask`` is 1 for tokens that the model wrote. ``images`` are what the sandbox showed, in order."""

    prompt: list[int]
    prompt_images: list[Image.Image] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    """Of the tokens, where the engine that wrote them gave any; 0.0 for the sandbox's, None for greedy ones."""
    images: list[Image.Image] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    """What the model wrote, turn by turn."""

    @property
    def all_images(self) -> list[Image.Image]:
        """The prompt's, then those of the sandbox."""
        return [*self.prompt_images, *self.images]

    @property
    def n_written(self) -> int:
        """Tokens that the model wrote."""
        return sum(self.mask)

    def write(self, ids: Sequence[int], text: str, logprobs: Sequence[float | None] | None) -> None:
        """Adds a turn of the model's."""
        self._add(ids, 1, logprobs or [0.0] * len(ids))
        self.turns.append(text)

    def show(self, ids: Sequence[int], images: Sequence[Image.Image]) -> None:
        """Adds an observation."""
        self._add(ids, 0, [0.0] * len(ids))
        self.images += images

    def _add(self, ids: Sequence[int], written: int, logprobs: Sequence[float | None]) -> None:
        self.ids += ids
        self.mask += [written] * len(ids)
        self.logprobs += logprobs


def observation_tokens(processor: Any, parts: Sequence[Part], images: Sequence[Image.Image], *, last: int) -> list[int]:
    """An observation as a user turn, up to where the model writes again; images as runs of image tokens.

    The turn before it is ended first where the model did not end it itself (``last`` is its last token).
    """
    tokenizer = processor.tokenizer
    ended = last == tokenizer.convert_tokens_to_ids(TURN_END)
    content = "".join(plain(part.text) if isinstance(part, Text) else _IMAGE for part in parts)
    text = f"{'' if ended else TURN_END}\n<|im_start|>user\n{content}{TURN_END}\n<|im_start|>assistant\n"
    encoded = processor(text=[text], images=list(images)) if images else tokenizer([text])
    ids: list[int] = encoded["input_ids"][0]
    return ids


@dataclass(frozen=True, slots=True)
class GeneratedTurn:
    """A turn as an engine generated it."""

    ids: list[int]
    text: str
    ending: Ending
    logprobs: list[float | None] | None = None
