"""A cache of image patches: every image of a batch of rollouts is processed once.

A step processes the same images repeatedly: all rollouts of a prompt have the prompt's, every turn those of the turns
before it, the update all of them. They are copies, so the key is their pixels.
"""

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

_MADE = {"pixel_values", "image_grid_thw"}
"""What Qwen's processors make of images: rows of patches, and a row of numbers per image. Both can be joined."""
_PLAIN = {"RGB", "L"}
"""Modes in which pixels are all that there is to an image."""


@contextmanager
def processed_once(image_processor: Any) -> Iterator[None]:
    """Within, ``image_processor`` recalls what it made of the same pixels; what it returns is the same as without."""
    image_processor.preprocess = _Recall(image_processor.preprocess).preprocess
    try:
        yield
    finally:
        del image_processor.preprocess  # the class's own is seen again


@dataclass(frozen=True, slots=True)
class _Recall:
    process: Any
    _made: dict[Any, Any] = field(default_factory=dict)
    _known: dict[int, tuple[Image.Image, bytes]] = field(default_factory=dict)
    """Digests by the identity of images, which are held so that it stays theirs."""

    def preprocess(self, images: Any, **options: Any) -> Any:
        """In the place of the processor's method of this name."""
        flat = cast(list[Any], make_flat_list_of_images(images))
        if not all(isinstance(image, Image.Image) and image.mode in _PLAIN for image in flat):
            return self.process(images, **options)
        features = [self._patches(image, options) for image in flat]
        if set(features[0]) != _MADE:
            return self.process(images, **options)
        return BatchFeature({name: _joined([feature[name] for feature in features]) for name in features[0]})

    def _patches(self, image: Image.Image, options: dict[str, Any]) -> Any:
        key = (self._digest(image), repr(sorted(options.items())))
        if key not in self._made:
            self._made[key] = self.process([image], **options)
        return self._made[key]

    def _digest(self, image: Image.Image) -> bytes:
        if id(image) not in self._known:
            name = f"{image.mode} {image.width} {image.height} ".encode()
            self._known[id(image)] = image, blake2b(name + image.tobytes(), digest_size=16).digest()
        return self._known[id(image)][1]


def _joined(parts: Sequence[Any]) -> Any:
    """(images' rows, …), as tensors where they are tensors."""
    return torch.cat(list(parts)) if torch.is_tensor(parts[0]) else np.concatenate(parts)
