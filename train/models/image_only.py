"""A Qwen-VL processor without videos, for machines without torchvision.

The stock processor insists on its video processor, and that one on torchvision. A checkpoint saved with this class
carries a copy of this file, so that other programs can load it by path with ``trust_remote_code=True``. That is why
the file imports nothing of Darkroom.
"""

from typing import Any

import torch
from transformers import ProcessorMixin, Qwen2_5_VLProcessor


class ImageOnlyProcessor(Qwen2_5_VLProcessor):
    """``Qwen2_5_VLProcessor`` with an image processor and a tokenizer only."""

    def __init__(
        self, image_processor: Any = None, tokenizer: Any = None, chat_template: str | None = None, **kwargs: Any
    ) -> None:
        self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
        # past the base class, which would build the video processor
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)  # type: ignore[no-untyped-call]

    def __call__(self, images: Any = None, text: Any = None, **kwargs: Any) -> Any:
        """Process as the base class; numpy of PIL image processors becomes torch (TRL's tool loop needs it)."""
        # `transformers serve` hands the processor where generate() wants a tokenizer, for stop strings
        if isinstance(images, str) and text is None:
            return self.tokenizer(images, **kwargs)
        output = super().__call__(images=images, text=text, **kwargs)
        for name in ("pixel_values", "image_grid_thw"):
            value = output.get(name)
            if hasattr(value, "__array__") and not torch.is_tensor(value):
                output[name] = torch.as_tensor(value)
        return output

    def get_vocab(self) -> Any:
        """The tokenizer's vocabulary (for stop strings, like the two methods below)."""
        return self.tokenizer.get_vocab()

    def _convert_id_to_token(self, index: int) -> Any:
        return self.tokenizer._convert_id_to_token(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> Any:
        return self.tokenizer.convert_tokens_to_string(tokens)


ImageOnlyProcessor.register_for_auto_class("AutoProcessor")  # type: ignore[no-untyped-call]
