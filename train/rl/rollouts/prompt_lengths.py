"""Prompts that leave no room for a rollout in the model's context, and images that an engine would read in another
size, found before the first step.

Lengths follow from texts and from the sizes of images; no pixel is computed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from darkroom.pipelines.publishing.dataset_reader import read_files
from darkroom.train.examples.datasets import Part, dataset_files
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.methods.base import GradedQuestion
from darkroom.train.rl.rollouts.prompts import opening, question_of
from darkroom.train.runs import TrainError


class PromptsTooLong(TrainError):
    """``n_long`` of ``n_prompts`` do not fit; ``longest`` is in tokens, without its rollout."""

    def __init__(self, n_long: int, n_prompts: int, longest: int, *, max_tokens: int, context: int) -> None:
        room = context - longest
        super().__init__(
            f"{n_long} of {n_prompts} prompts and --max-tokens {max_tokens} exceed the model's context of {context} "
            f"tokens; the longest prompt has {longest}: lower --max-pixels"
            + (f", or set --max-tokens {room} or less" if room > 0 else ", or leave these rows out")
        )
        self.n_long, self.n_prompts, self.longest = n_long, n_prompts, longest


def check_lengths(
    folder: Path,
    processor: Any,
    *,
    protocol: str,
    modes: Iterable[str],
    max_tokens: int,
    context: int,
    wording: str | None = None,
    part: Part = "train",
) -> None:
    """Every question of a dataset in every mode, as ``processor`` renders it. Raises ``PromptsTooLong``."""
    lengths: dict[str, int] = {}
    named = list(modes)
    for row in read_files(dataset_files(folder, part=part), without=("images", "videos")):
        if row["sample_id"] not in lengths:
            question, spoken = question_of(row), row.get("protocol") or protocol
            lengths[row["sample_id"]] = max(
                prompt_length(question, processor, spoken, mode, wording=wording) for mode in named
            )
    long = [length for length in lengths.values() if length + max_tokens > context]
    if long:
        raise PromptsTooLong(len(long), len(lengths), max(long), max_tokens=max_tokens, context=context)


def check_pixels(model: Path, processor: Any, engine: str) -> None:
    """Raises ``TrainError`` where the ``engine`` is vLLM, which has the checkpoint's own processor, and ``processor``
    reads images in another size: rollouts would be sampled from one image and trained on another."""
    own = load_processor(model).image_processor.size
    if engine != "transformers" and processor.image_processor.size != own:
        raise TrainError(
            f"--engine {engine} reads images by the checkpoint's own limits: give --min-pixels {own['shortest_edge']} "
            f"and --max-pixels {own['longest_edge']}, or others to the SFT that makes the checkpoint"
        )


def prompt_length(
    question: GradedQuestion, processor: Any, protocol: str, mode: str = "free", *, wording: str | None = None
) -> int:
    """Tokens of a prompt with its images."""
    messages = opening(question, protocol=protocol, mode=mode, wording=wording)
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    images = processor.image_processor
    n_patches = (
        images.get_number_of_image_patches(image.height, image.width) // images.merge_size**2
        for image in question.sample.images
    )
    n_tokens: int = len(processor.tokenizer(text)["input_ids"]) + sum(n - 1 for n in n_patches)
    return n_tokens
