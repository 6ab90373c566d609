"""Models and processors from a folder, the same for every program: left padding, no remote code.

A model is a folder that ``save_pretrained`` wrote. Covered: Qwen2-VL, Qwen2.5-VL and Qwen3-VL, whose chat templates the
files in ``train/templates`` extend.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.records import Observation
from train.faults import TrainFault
from train.templates import MODEL_TYPES

VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
"""Tokens that only a processor may write: sampled by a model they would stand for images that are not there."""

THINNEST = 200
"""Of a picture, its longer side through its shorter: from here on Qwen's processors refuse it."""
SMALL = 10_000_000
"""Weights below which threads wait for one another longer than they compute: such a model trains on one thread."""


def model_type(folder: Path) -> str:
    """Which of the model types that the templates fit ``folder`` holds. Raises ``TrainFault`` when it holds none."""
    config = folder / "config.json"
    if not config.is_file():
        raise TrainFault(
            f"no model in {folder}: expected a folder with config.json and weights. For a model of the hub run "
            "`hf download ORG/NAME --local-dir FOLDER` first; for a toy run `python -m train.tiny FOLDER`"
        )
    found = json.loads(config.read_text()).get("model_type")
    if found not in MODEL_TYPES:
        raise TrainFault(f"{folder} holds a {found!r} model; the chat templates fit {', '.join(MODEL_TYPES)} only")
    return str(found)


def require_model(folder: Path) -> None:
    """Raises ``TrainFault`` unless ``folder`` holds a model that the templates fit."""
    model_type(folder)


def load_processor(folder: Path, *, min_pixels: int | None = None, max_pixels: int | None = None) -> Any:
    """The processor of a model; images are scaled to between ``min_pixels`` and ``max_pixels`` (default: its own)."""
    from transformers import AutoProcessor

    from train.image_only import ImageOnlyProcessor

    with_videos = importlib.util.find_spec("torchvision") is not None and not _is_image_only(folder)
    kind = AutoProcessor if with_videos else ImageOnlyProcessor
    # GRPO: with right padding mm_token_type_ids no longer line up with the tokens, and nothing says so
    processor = kind.from_pretrained(folder, padding_side="left")
    size = processor.image_processor.size
    most = max_pixels or size["longest_edge"]
    processor.image_processor.size = {
        "shortest_edge": min(min_pixels or size["shortest_edge"], most),
        "longest_edge": most,
    }
    return processor


def load_model(folder: Path) -> Any:
    """The model, in float32 on a CPU and bfloat16 on a GPU."""
    import torch
    from transformers import AutoModelForImageTextToText

    on_gpu = torch.cuda.is_available()
    dtype = torch.bfloat16 if on_gpu else torch.float32
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype)
    if not on_gpu and model.num_parameters() < SMALL:
        torch.set_num_threads(1)
    return model


def device_arguments() -> dict[str, Any]:
    """What trainers are told about the machine: a CPU trains in float32, a GPU in bfloat16 with checkpointing."""
    import torch

    on_gpu = torch.cuda.is_available()
    return {"use_cpu": not on_gpu, "bf16": on_gpu, "activation_checkpointing": on_gpu, "dataloader_num_workers": 0}


def lora_config(rank: int, *, vision: bool = True) -> Any:
    """LoRA on every linear layer but the output head; None for rank 0, which trains all weights.

    Without ``vision`` the vision tower and what joins it to the language model have none either.
    """
    if rank == 0:
        return None
    from peft import LoraConfig

    left_out = r".*lm_head" if vision else r".*lm_head|.*\bvisual\..*"
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", exclude_modules=left_out)


def freeze_vision(model: Any) -> None:
    """Takes the vision tower, and what joins it to the language model, out of the training."""
    model.model.visual.requires_grad_(False)


def context_length(folder: Path) -> int:
    """The most tokens that a model reads."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(folder).get_text_config().max_position_embeddings)


def save_checkpoint(trainer: Any, processor: Any, folder: Path, *, chat_template: str) -> None:
    """Writes model and processor as one loadable folder; LoRA weights are merged into the model.

    Called by every process; the first one writes. ``chat_template`` is the one the model came with.
    """
    if hasattr(trainer.model, "merge_and_unload") and trainer.args.should_save:
        trainer.model.merge_and_unload().save_pretrained(folder)
    else:
        trainer.save_model(str(folder))
    if trainer.args.should_save:
        processor.chat_template = chat_template
        processor.save_pretrained(folder)
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle; training.json says it in the open


def suppressed_tokens(processor: Any) -> list[int]:
    """Ids of ``VISION_TOKENS`` that the tokenizer has."""
    vocabulary = processor.tokenizer.get_vocab()
    return [vocabulary[token] for token in VISION_TOKENS if token in vocabulary]


def _is_image_only(folder: Path) -> bool:
    config = folder / "processor_config.json"
    return config.is_file() and json.loads(config.read_text()).get("processor_class") == "ImageOnlyProcessor"


def is_too_thin(width: int, height: int) -> bool:
    """Whether the Qwen-VL processors refuse an image of so many pixels: one side 200 times the other, or more.

    The released code of Thyme takes none of these either.
    """
    return max(width, height) >= THINNEST * min(width, height)


def viewable(seen: Observation) -> Observation:
    """``seen``; where it shows an image that is too thin, the error that the model is told instead."""
    thin = [image for image in seen.images if is_too_thin(image.width, image.height)]
    if not thin:
        return seen
    error = f"ValueError: an image of {thin[0].width}x{thin[0].height} pixels is too thin to be shown"
    return replace(seen, status="error", images=(), error=error)
