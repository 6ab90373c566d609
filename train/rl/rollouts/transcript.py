"""A rollout as the model reads it: tokens, and the patches of its images, each image of a batch processed once. Tokens
are never decoded and encoded again: the sampled tokens are the trained ones."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from transformers import BatchFeature
from transformers.image_utils import make_flat_list_of_images

from darkroom.pipelines.models.messages import Part, Text
from darkroom.pipelines.publishing.layouts.turns import plain
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
    """Log-probabilities of the tokens, where the engine gave any; 0.0 for the sandbox's, None for greedy ones."""
    images: list[Image.Image] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    """Texts of the model, turn by turn."""

    @property
    def all_images(self) -> list[Image.Image]:
        return [*self.prompt_images, *self.images]

    @property
    def n_written(self) -> int:
        return sum(self.mask)

    def write(self, ids: Sequence[int], text: str, logprobs: Sequence[float | None] | None) -> None:
        self._add(ids, 1, logprobs or [0.0] * len(ids))
        self.turns.append(text)

    def show(self, ids: Sequence[int], images: Sequence[Image.Image]) -> None:
        self._add(ids, 0, [0.0] * len(ids))
        self.images += images

    def _add(self, ids: Sequence[int], written: int, logprobs: Sequence[float | None]) -> None:
        self.ids += ids
        self.mask += [written] * len(ids)
        self.logprobs += logprobs


def observation_tokens(processor: Any, parts: Sequence[Part], images: Sequence[Image.Image], *, last: int) -> list[int]:
    """Encode an observation as a user turn, up to where the model writes again; images as runs of image tokens. The
    turn before it is ended first where the model did not end it itself (``last`` is its last token)."""
    tokenizer = processor.tokenizer
    ended = last == tokenizer.convert_tokens_to_ids(TURN_END)
    content = "".join(plain(part.text) if isinstance(part, Text) else _IMAGE for part in parts)
    text = f"{'' if ended else TURN_END}\n<|im_start|>user\n{content}{TURN_END}\n<|im_start|>assistant\n"
    encoded = processor(text=[text], images=list(images)) if images else tokenizer([text])
    return cast(list[int], encoded["input_ids"][0])


@dataclass(frozen=True, slots=True)
class GeneratedTurn:
    """A turn as an engine generated it."""

    ids: list[int]
    text: str
    ending: Ending
    logprobs: list[float | None] | None = None


_FEATURES = {"pixel_values", "image_grid_thw"}
"""Features of Qwen's processors: rows of patches, and a row of numbers per image. Both can be joined."""
_PLAIN = {"RGB", "L"}
"""Modes in which pixels are all that there is to an image."""


@contextmanager
def processed_once(image_processor: Any) -> Iterator[None]:
    """Cache the patches of ``image_processor`` by pixels; its results are the same as without. All rollouts of a prompt
    have the prompt's images, every turn those before it, the update all of them, as copies: the key is their pixels."""
    image_processor.preprocess = _PatchCache(image_processor.preprocess).preprocess
    try:
        yield
    finally:
        del image_processor.preprocess  # the class's own is seen again


@dataclass(frozen=True, slots=True)
class _PatchCache:
    process: Any
    _patches_by_pixels: dict[Any, Any] = field(default_factory=dict)

    def preprocess(self, images: Any, **options: Any) -> Any:
        """Process images in place of the processor's method of this name."""
        flat = cast(list[Any], make_flat_list_of_images(images))
        if not all(isinstance(image, Image.Image) and image.mode in _PLAIN for image in flat):
            return self.process(images, **options)
        features = [self._patches(image, options) for image in flat]
        if set(features[0]) != _FEATURES:
            return self.process(images, **options)
        columns = {name: [feature[name] for feature in features] for name in features[0]}
        join = torch.cat if torch.is_tensor(features[0]["pixel_values"]) else np.concatenate
        return BatchFeature({name: join(parts) for name, parts in columns.items()})

    def _patches(self, image: Image.Image, options: dict[str, Any]) -> Any:
        pixels = blake2b(image.tobytes(), digest_size=16).digest()
        key = (image.mode, image.size, pixels, repr(sorted(options.items())))
        if key not in self._patches_by_pixels:
            self._patches_by_pixels[key] = self.process([image], **options)
        return self._patches_by_pixels[key]
