"""A reader that knows how many tokens every image takes, and computes no pixels.

Scaling and cutting up the pictures is nearly all the time that a processor takes, and nothing of it shows in the
tokens: the sizes alone do. ``gate`` reads some rows both ways to see that nothing else differs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from train.reading import Reader


class SizesOnly:
    """Stands in for a Qwen-VL image processor: the grids have the right number of patches, and no pixels."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, images: Any, **_: Any) -> dict[str, Any]:
        """Raises ``ValueError`` for a picture that cannot be scaled (it is 200 times as long as it is wide)."""
        import torch
        from transformers.image_utils import make_flat_list_of_images

        count = self._processor.get_number_of_image_patches
        flat: Any = make_flat_list_of_images(images)
        patches = [count(image.height, image.width) for image in flat]
        return {"pixel_values": torch.empty(0), "image_grid_thw": torch.tensor([[1, 1, n] for n in patches])}


def without_pixels(reader: Reader) -> Reader:
    """The same reader, of sizes only."""
    processor = copy.copy(reader.processor)
    processor.image_processor = SizesOnly(reader.processor.image_processor)
    return replace(reader, processor=processor)
