"""Models and processors from a folder and back to one, the same for every program: left padding, no remote code.

A model is a folder that ``save_pretrained`` wrote. Covered: Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE, whose chat
templates the files in ``train/templates`` extend. A processor's files are as the model's own publisher would write
them, also where torchvision is absent: without it the processor in memory has no videos (``image_only.py``). vLLM and
other trainers read a checkpoint with the stock class all the same, which wants its video processor's settings.
"""

import importlib.util
import json
import shutil
from logging import ERROR
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from darkroom.pipelines.publishing.layouts.trl import TEMPLATE, chat_template
from darkroom.train.runs import TrainError
from darkroom.train.runs.reporting import trackers

VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
"""Tokens that only a processor may write: sampled by a model they would stand for missing images."""

SMALL = 10_000_000
"""Parameters below which threads cost more than they save: such a model trains on one thread."""


def model_type(folder: Path) -> str:
    """Read the model type of ``folder``. Raises ``TrainError`` for no model and for one that no template fits."""
    config = folder / "config.json"
    if not config.is_file():
        get = "For a model of the hub run `hf download ORG/NAME --local-dir FOLDER` first"
        found = f"no model in {folder}: expected a folder with config.json and weights"
        raise TrainError(f"{found}. {get}; for a toy run `darkroom train tiny FOLDER`")
    try:
        fields = json.loads(config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TrainError(f"{config} is no JSON ({error}): copy or download the model again") from error
    if not isinstance(fields, dict):
        raise TrainError(f"{config} holds no JSON object: copy or download the model again")
    name = fields.get("model_type")
    if name not in STOCK:
        mend = "train another elsewhere, on an export (darkroom export); evaluate it with --url, served by vLLM"
        raise TrainError(f"{folder} holds a {name!r} model; supported are {', '.join(STOCK)}: {mend}")
    return str(name)


_LONGEST_HEADER = 100_000_000
"""Bytes of a safetensors file, by its library."""
_AGAIN = "download the model again, with `hf download ORG/NAME --local-dir FOLDER`"
_NEEDED = (("tokenizer.json", "vocab.json", "tokenizer.model"), ("preprocessor_config.json", "processor_config.json"))


def require_model(folder: Path) -> None:
    """Check that a model is whole, before anything long: its type, each weights file's header and length, tokenizer,
    processor and every other JSON file. Raises ``TrainError`` that names the file and the remedy."""
    model_type(folder)
    for path in sorted(folder.glob("*.json")):
        try:
            _read(path)
        except ValueError as error:
            raise TrainError(f"{path} is no JSON ({error}): {_AGAIN}") from error
    index = _read(folder / "model.safetensors.index.json").get("weight_map", {})
    names = sorted(set(index.values())) or ([] if any(folder.glob("pytorch_model*.bin*")) else ["model.safetensors"])
    for name in names:
        if lack := _lack_of_weights(folder / name):
            raise TrainError(f"{folder / name} {lack}: {_AGAIN}")
    for files in _NEEDED:
        if not any((folder / name).is_file() for name in files):
            raise TrainError(f"{folder} has no {' or '.join(files)}: {_AGAIN}")
    if quantised := _read(folder / "config.json").get("quantization_config"):
        from transformers.quantizers.auto import AutoHfQuantizer

        try:
            AutoHfQuantizer.from_config(quantised, pre_quantized=True).validate_environment(device_map=None)
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            why = f"{' '.join(str(error).split())}. Take the model that it was made of, or serve this one with vLLM"
            raise TrainError(f"{folder} is quantised: {why}") from error


def _lack_of_weights(path: Path) -> str:
    """Return what a safetensors file lacks; empty for a whole one."""
    if not path.is_file():
        return "is missing"
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            return "is a pointer of Git LFS, not the weights"
        length = int.from_bytes(start, "little")
        try:
            header: Any = json.loads(file.read(length)) if length < _LONGEST_HEADER else None
            end = 8 + length + max(of["data_offsets"][1] for name, of in header.items() if name != "__metadata__")
        except (AttributeError, KeyError, TypeError, ValueError):
            return "is no safetensors file, or its beginning alone"
    return "" if (size := path.stat().st_size) >= end else f"is cut off, with {size:,} of {end:,} bytes"


def check_weights(folder: Path) -> None:
    """Check that a model's files hold each of its weights in its shape, none of which is read. Raises ``TrainError``:
    transformers only warns, and begins with random numbers. Before DeepSpeed starts, which has weights on no device."""
    if _read(folder / "config.json").get("quantization_config"):
        return
    from transformers import AutoModelForImageTextToText
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity(ERROR)  # its report has many lines
    try:
        options: dict[str, Any] = {"device_map": "meta", "ignore_mismatched_sizes": True, "output_loading_info": True}
        loaded: Any = AutoModelForImageTextToText.from_pretrained(folder, **options)
    finally:
        logging.set_verbosity(level)
    outcome = loaded[1]
    if wrong := sorted([*outcome["missing_keys"], *(name for name, *_ in outcome["mismatched_keys"])]):
        lack = f"{len(wrong):,} weights of its model, or has them in another shape, as {wrong[0]}"
        raise TrainError(f"{folder} lacks {lack}: {_AGAIN}")


def load_processor(folder: Path, *, min_pixels: int | None = None, max_pixels: int | None = None) -> Any:
    """Load the processor of a model; images are scaled to between ``min_pixels`` and ``max_pixels`` (default: its own).
    Never to more than the model's own limit: it was not trained for longer contexts."""
    from transformers import AutoProcessor

    from darkroom.train.models.image_only import ImageOnlyProcessor

    config = folder / "processor_config.json"
    image_only = config.is_file() and json.loads(config.read_text()).get("processor_class") == "ImageOnlyProcessor"
    with_videos = importlib.util.find_spec("torchvision") is not None and not image_only
    kind = AutoProcessor if with_videos else ImageOnlyProcessor
    # GRPO: with right padding mm_token_type_ids no longer line up with the tokens, and nothing says so
    processor = kind.from_pretrained(folder, padding_side="left")
    size = processor.image_processor.size
    most = min(max_pixels or size["longest_edge"], size["longest_edge"])
    least = min(min_pixels or size["shortest_edge"], most)
    processor.image_processor.size = {"shortest_edge": least, "longest_edge": most}
    return processor


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def load_model(folder: Path, *, keeps_float32: bool = False, attn_implementation: str | None = None) -> Any:
    """Load the model: in float32 on a CPU, and on a GPU in bfloat16 unless it ``keeps_float32``, as for training all
    weights: of bfloat16 weights 98 in 100 stay where they are in 20 steps of 1e-6, smaller than half the distance to
    the next number. ``attn_implementation`` is one of transformers' names."""
    import torch
    from transformers import AutoModelForImageTextToText

    dtype = torch.bfloat16 if has_gpu() and not keeps_float32 else torch.float32
    attention = {"attn_implementation": attn_implementation} if attn_implementation else {}
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype, **attention)
    if not has_gpu() and model.num_parameters() < SMALL:
        torch.set_num_threads(1)
    return model


def score_only_trained_tokens() -> None:
    """Keep TRL's output head on a CPU from scoring the tokens without a label: half of a small model's training. TRL
    leaves them out on Triton alone, since elsewhere the head might be compiled anew for each number of tokens."""
    from trl.kernels import chunked_logprob
    from trl.trainer import utils

    module: Any = utils
    module._use_triton = lambda device: device.type == "cpu" or chunked_logprob._use_triton(device)


def device_arguments() -> dict[str, Any]:
    """The trainer arguments of this machine: a CPU computes in float32, a GPU in bfloat16 with checkpointing."""
    on_gpu = has_gpu()
    return {"use_cpu": not on_gpu, "bf16": on_gpu, "activation_checkpointing": on_gpu, "dataloader_num_workers": 0}


def trainer_arguments(checkpoints: Path, *, seed: int, save_steps: int) -> dict[str, Any]:
    """Return arguments of all trainers: reproducible, every step logged, two checkpoints kept."""
    return {
        "output_dir": str(checkpoints),
        "seed": seed,
        "data_seed": seed,
        "logging_steps": 1,
        "save_strategy": "steps" if save_steps else "no",
        "save_steps": save_steps or 500,
        "save_total_limit": 2,
        "report_to": trackers() or "none",
        "disable_tqdm": True,
        **device_arguments(),
    }


def lora_config(rank: int, *, vision: bool = True) -> Any:
    """LoRA on every linear layer but the output head; None for rank 0, which trains all weights. Without ``vision`` the
    vision tower and its projector have none either."""
    if rank == 0:
        return None
    from peft import LoraConfig

    left_out = r".*lm_head" if vision else r".*lm_head|.*\bvisual\..*"
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", exclude_modules=left_out)


def context_length(folder: Path) -> int:
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(folder).get_text_config().max_position_embeddings)


def save_checkpoint(
    trainer: Any, processor: Any, folder: Path, *, base: Path, chat_template: str, best: Path | None = None
) -> None:
    """Write model and processor as one loadable folder, in the first of all processes; LoRA weights are merged.
    ``base`` is the model that training began with, ``chat_template`` its template, ``best`` a folder that
    ``trainer.save_model`` wrote, whose weights are written instead of those of the last step."""
    if hasattr(trainer.model, "merge_and_unload") and trainer.args.should_save:
        if best is not None:
            from peft import load_peft_weights, set_peft_model_state_dict

            outcome: Any = set_peft_model_state_dict(trainer.model, load_peft_weights(str(best), device="cpu"))
            if outcome.unexpected_keys:
                raise TrainError(f"{best} holds other weights than the model's LoRA: {outcome.unexpected_keys[:3]}")
        trainer.model.merge_and_unload().save_pretrained(folder)
    elif best is not None:
        if trainer.args.should_save:
            shutil.copytree(best, folder, dirs_exist_ok=True)
    else:
        trainer.save_model(str(folder))
    if trainer.args.should_save:
        processor.chat_template = chat_template
        save_processor(processor, folder, model_type=model_type(base), base=base)
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle; training.json says it in the open


def suppressed_tokens(processor: Any) -> list[int]:
    vocabulary = processor.tokenizer.get_vocab()
    return [vocabulary[token] for token in VISION_TOKENS if token in vocabulary]


def template(name: Literal["sft", "grpo"], model_type: str = "qwen2_5_vl") -> str:
    """The Jinja source for a model type of ``STOCK``; ``darkroom.train.models.loading.model_type`` reads a folder's."""
    path = TEMPLATE if name == "sft" else Path(__file__).parents[1] / "templates" / "qwen_vl_grpo.jinja"
    return chat_template(path.read_text(), model_type.removesuffix("_moe"))


STOCK = yaml.safe_load(Path(__file__).with_name("stock_processors.yaml").read_text(encoding="utf-8"))
"""The classes of a processor and of its video processor, by model type: those that the templates fit."""
_NAMES = ("auto_map", "processor_class", "image_processor_type", "video_processor_type")


def save_processor(processor: Any, folder: Path, *, model_type: str, base: Path | None = None) -> None:
    """Write ``processor`` with the video settings of ``base``, the model that training began with: transformers 5 reads
    ``processor_config.json``, version 4 those beside it. ``auto_map`` stays, for transformers without torchvision."""
    processor.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # which their library lets the owner alone read
        weights.chmod((folder / "config.json").stat().st_mode)
    path = folder / "processor_config.json"
    stated = _read(path)
    if "auto_map" not in stated:
        return  # the stock class
    kind, video_kind = STOCK[model_type]
    images = {name: value for name, value in stated["image_processor"].items() if name != "auto_map"}
    # as transformers reads the videos' settings: from a file of their own, from the processor's, or those of images
    names = ("video_preprocessor", "processor", "preprocessor")
    own, nested, stock = (_read(base / f"{name}_config.json") if base else {} for name in names)
    settings = own or nested.get("video_processor") or stock or images
    videos = {name: value for name, value in settings.items() if name not in _NAMES}
    videos["video_processor_type"] = video_kind
    _write(path, {**stated, "processor_class": kind, "image_processor": images, "video_processor": videos})
    _write(folder / "preprocessor_config.json", {**images, "processor_class": kind})
    _write(folder / "video_preprocessor_config.json", {**videos, "processor_class": kind})


def _read(path: Path) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {})


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
