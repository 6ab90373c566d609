"""What a training takes of one GPU, beside what `darkroom train plan` says. On a machine with a GPU:

    python -m measurements.gpu_training DATASET qwen2.5-vl-3b qwen3-vl-2b --folder FOLDER
    python -m measurements.gpu_training DATASET qwen3-vl-2b --program grpo --rows 8 --folder FOLDER

Models of the published shapes with random weights, and a tokenizer of the dataset's own texts; images are scaled to
``--pixels``. A line of JSON for each: the peak of allocated GiB up to each step, and the seconds of the steps. The plan
to put beside them is that of `--gpus 1`, with the rows and tokens that the training prints.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
import yaml
from transformers import AutoModelForImageTextToText, TrainerCallback, trainer

from darkroom.train import tiny
from darkroom.train.models import planning
from darkroom.train.models.processor_files import save_processor

PATCHES = 8 * 28 * 28
"""Pixels by which an image may be smaller than asked for: sides are multiples of 28."""
SIZES = yaml.safe_load(Path(planning.__file__).with_name("sizes.yaml").read_text())


class Clock(TrainerCallback):
    """Seconds and the peak of allocated bytes of every step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.peaks: list[int] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        torch.cuda.synchronize()
        self._began = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - self._began)
        self.peaks.append(torch.cuda.max_memory_allocated())


def published_shape(name: str, dataset: Path, pixels: tuple[int, int]) -> tuple[Any, Any]:
    """Configuration of the shape ``name``, and its processor with a tokenizer of the dataset's texts.

    ``pixels``: an image's least and most.
    """
    config = planning._configuration(SIZES[name])
    tokenizer = tiny._tokenizer([*tiny._TINY["texts"], *tiny.dataset_texts(dataset)], tiny.LINE_SPLIT)
    processor = tiny._processor(tokenizer, SIZES[name]["type"])
    processor.image_processor.size = dict(zip(("shortest_edge", "longest_edge"), pixels, strict=True))
    token = tokenizer.convert_tokens_to_ids
    for key in ("image", "video", "vision_start", "vision_end"):
        setattr(config, f"{key}_token_id", token(f"<|{key}_pad|>" if key in ("image", "video") else f"<|{key}|>"))
    text = config.get_text_config()
    text.eos_token_id, text.pad_token_id, text.bos_token_id = token("<|im_end|>"), token("<|endoftext|>"), None
    return config, processor


def random_model(name: str, dataset: Path, folder: Path, pixels: int) -> Path:
    """A checkpoint of the published shape ``name`` in bfloat16, whose processor lets images have ``pixels``."""
    config, processor = published_shape(name, dataset, (784, pixels))
    text = config.get_text_config()
    with torch.device("cuda"):
        model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-untyped-call]
    model.generation_config.eos_token_id = [text.eos_token_id, text.pad_token_id]
    model.generation_config.pad_token_id = text.pad_token_id
    model.save_pretrained(folder)
    save_processor(processor, folder, model_type=SIZES[name]["type"])
    return folder


def history_of(program: str, dataset: Path, model: Path, pixels: int, rows: int, clock: Clock) -> dict[str, Any]:
    """A few steps, and their history."""
    trainer.DEFAULT_CALLBACKS.append(clock)  # type: ignore[arg-type]
    try:
        if program == "sft":
            from darkroom.train.finetuning.settings import SftSettings
            from darkroom.train.sft import finetune

            sft = SftSettings(max_steps=5, batch_size=rows, min_pixels=pixels - PATCHES, max_pixels=pixels)
            return finetune(dataset, model, model.with_name("trained"), sft)
        from darkroom.train.grpo import reinforce
        from darkroom.train.rl.methods import settings_of

        grpo: Any = settings_of(
            "thyme", max_steps=2, generations=rows, batch_size=rows, max_tokens=256, max_rounds=2, oversample=1.0
        )
        return reinforce(dataset, model, model.with_name("trained"), grpo)
    finally:
        trainer.DEFAULT_CALLBACKS.remove(clock)  # type: ignore[arg-type]


def main(
    dataset: Path,
    models: list[str],
    folder: Annotated[Path, typer.Option()],
    program: str = "sft",
    pixels: int = 1_003_520,
    rows: int = 1,
) -> None:
    """Trains each for some steps."""
    for name in models:
        clock = Clock()
        shutil.rmtree(folder, ignore_errors=True)
        model = random_model(name, dataset, folder / "model", pixels)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        history = history_of(program, dataset, model, pixels, rows, clock)
        print(
            json.dumps(
                {
                    "model": name,
                    "program": program,
                    "device": torch.cuda.get_device_name(),
                    "rows": rows,
                    "parameters": planning.shape_of(name).n_parameters,
                    "peaks_gib": [round(peak / planning.GIB, 2) for peak in clock.peaks],
                    "seconds": [round(seconds, 3) for seconds in clock.seconds],
                    "steps": history["steps"],
                }
            ),
            flush=True,
        )
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    typer.run(main)
