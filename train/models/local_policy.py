"""A checkpoint folder as a policy: it generates in this process with transformers, on a CPU or a GPU.

    policy = LocalPolicy(Path("data/checkpoints/grpo"), store, sampling=Sampling(temperature=0.0))
    completion = await policy.write(turn)

Concurrent calls are generated as one batch. A row's tokens depend on its turn's seed alone: noise from the row's own
generator is added to the logits and the largest is taken (the Gumbel-max trick), whatever batch the turn is in. On a
GPU in bfloat16 the logits themselves differ by a rounding error between batches; the ledger keeps the first completion.
The weights are loaded for the first turn.
"""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria, TopKLogitsWarper, TopPLogitsWarper

from darkroom.pipelines.models.messages import ImagePart, is_too_thin
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    PolicyError,
    PolicyIdentity,
    PolicyUnavailable,
)
from darkroom.pipelines.publishing.layouts.trl import content_parts
from darkroom.pipelines.records import Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import GroupCommit
from darkroom.train.models import loading
from darkroom.train.runs.checkpoints import folder_digest

_GATHER_SECONDS = 0.02
"""Wait of a batch for further calls."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; temperature 0 is greedy. ``max_tokens`` is the limit of one turn."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    top_k: int | None = None


class _Loaded(NamedTuple):
    """The checkpoint in memory; ``ends`` are the tokens with which it ends a turn."""

    model: Any
    processor: Any
    ends: frozenset[int]
    most_tokens: int


class LocalPolicy:
    """A policy that is the model in ``folder``. Raises ``TrainError`` when there is none that the templates fit."""

    def __init__(
        self,
        folder: Path,
        store: ImageStore,
        *,
        sampling: Sampling | None = None,
        batch_size: int = 8,
        max_pixels: int | None = None,
    ) -> None:
        """``max_pixels``: larger images are scaled down to so many (default: the model's own limit)."""
        loading.require_model(folder)
        self._folder, self._store = folder, store
        self._sampling = sampling or Sampling()
        self._batch_size, self._max_pixels = batch_size, max_pixels
        # one thread for all: how many of its own torch uses is set per thread (train/models/loading.py)
        self._thread = ThreadPoolExecutor(1, "generation")
        self._turns = GroupCommit(self._written, self._thread, most=batch_size, seconds=_GATHER_SECONDS)

    @cached_property
    def identity(self) -> PolicyIdentity:
        """The folder's name; as its revision the digest of its files."""
        sampling = {**asdict(self._sampling), "max_pixels": self._max_pixels}
        if sampling["top_k"] is None:
            del sampling["top_k"]  # the ledger's older keys stay valid
        return PolicyIdentity("local", self._folder.name, folder_digest(self._folder), sampling)

    @property
    def concurrency(self) -> int:
        """Two batches: one is generated while the code of the other runs."""
        return 2 * self._batch_size

    async def check(self) -> None:
        """Do nothing: the folder was checked when the policy was made."""

    async def write(self, turn: CompletionRequest) -> Completion:
        """Write the next turn; of a conversation that fills the model's context an empty one, cut off. Raises
        ``PolicyError`` for a question's image that the processor refuses, ``RowError`` (unsuitable) for code's."""
        for image in _images(turn):
            if is_too_thin(image.width, image.height):
                evidence = f"an image of {image.width}x{image.height} pixels is too thin to be shown"
                if image in turn.task.images:
                    raise PolicyError(evidence)
                raise RowError(Reason.UNSUITABLE, evidence)
        return await self._turns.ask(turn)

    async def close(self) -> None:
        """Wait for the batch that is being generated, if any; nothing can be written afterwards."""
        while self._turns.is_busy:
            await asyncio.sleep(_GATHER_SECONDS)
        self._thread.shutdown()

    def _written(self, turns: Sequence[CompletionRequest]) -> list[Completion]:
        inputs = self._inputs(turns)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        fits = [length < self._loaded.most_tokens for length in lengths]
        fitting = [turn for turn, fit in zip(turns, fits, strict=True) if fit]
        if len(fitting) < len(turns):
            inputs = self._inputs(fitting) if fitting else None
        written = iter(self._generated(fitting, inputs) if fitting else ())
        return [
            next(written) if fit else Completion("", finished=False, usage=Usage(calls=1, prompt_tokens=length))
            for fit, length in zip(fits, lengths, strict=True)
        ]

    def _generated(self, turns: Sequence[CompletionRequest], inputs: Any) -> list[Completion]:
        loaded, width = self._loaded, inputs["input_ids"].shape[1]
        seeds = [turn.seed for turn in turns]
        sampling = self._sampling
        sampler = SeededSampler(seeds, sampling.temperature, sampling.top_p, loaded.model.device, top_k=sampling.top_k)
        stops = sorted({stop for turn in turns for stop in turn.stop})
        try:
            with torch.inference_mode():
                sequences = loaded.model.generate(
                    **inputs.to(loaded.model.device),
                    max_new_tokens=min(sampling.max_tokens, loaded.most_tokens - width),
                    logits_processor=[sampler] if sampling.temperature > 0 else [],
                    stopping_criteria=[StopAtStrings(loaded.processor.tokenizer, stops, width)] if stops else [],
                )
        except torch.cuda.OutOfMemoryError as error:
            raise PolicyUnavailable(
                f"{len(turns)} conversations of up to {width} tokens do not fit into the GPU's memory; set a smaller "
                "--batch-size, or --max-pixels (of a policy: DARKROOM_POLICY_CONCURRENCY, …_MAX_PIXELS)"
            ) from error
        n_prompt = inputs["attention_mask"].sum(dim=1).tolist()
        return [self._completion(sequences[n, width:].tolist(), turn, n_prompt[n]) for n, turn in enumerate(turns)]

    def _completion(self, tokens: list[int], turn: CompletionRequest, n_prompt: int) -> Completion:
        loaded = self._loaded
        end = next((index for index, token in enumerate(tokens) if token in loaded.ends), None)
        text = loaded.processor.tokenizer.decode(tokens[:end], skip_special_tokens=True)
        cuts = [start + len(stop) for stop in turn.stop if (start := text.find(stop)) >= 0]
        # behind a stop string the batch's longer turns leave padding
        n_written = len(tokens) if end is None else end + (not cuts)
        usage = Usage(calls=1, prompt_tokens=n_prompt, completion_tokens=n_written)
        return Completion(text[: min(cuts, default=len(text))], bool(cuts) or end is not None, usage)

    def _inputs(self, turns: Sequence[CompletionRequest]) -> Any:
        processor = self._loaded.processor
        conversations = [
            [{"role": message.role, "content": content_parts(message.parts)} for message in turn.messages]
            for turn in turns
        ]
        render = partial(processor.apply_chat_template, add_generation_prompt=True, tokenize=False)
        texts = [render(conversation) for conversation in conversations]
        images = [[self._store.open(image).convert("RGB") for image in _images(turn)] for turn in turns]
        image_inputs = {"images": images} if any(images) else {}
        return processor(text=texts, **image_inputs, padding=True, return_tensors="pt")

    @cached_property
    def _loaded(self) -> _Loaded:
        loading.check_weights(self._folder)
        processor = loading.load_processor(self._folder, max_pixels=self._max_pixels)
        # one GPU per process where a launcher started several
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
        model = loading.load_model(self._folder).to(device).eval()
        ends, pad = model.generation_config.eos_token_id, processor.tokenizer.pad_token_id
        ends = ends if isinstance(ends, list) else [processor.tokenizer.eos_token_id if ends is None else ends]
        # a checkpoint's own settings (a repetition penalty, say) are no part of ours: what counts is in `Sampling`
        settings = {"eos_token_id": ends, "pad_token_id": pad, "suppress_tokens": loading.suppressed_tokens(processor)}
        model.generation_config = GenerationConfig.from_dict({"do_sample": False, **settings})
        most = model.config.get_text_config().max_position_embeddings
        return _Loaded(model, processor, frozenset([*ends, pad]), most)


def _images(turn: CompletionRequest) -> list[Any]:
    return [part.image for message in turn.messages for part in message.parts if isinstance(part, ImagePart)]


class SeededSampler(LogitsProcessor):
    """Sampler from the softmax: the greatest logit after Gumbel's noise (the negated logarithm of an exponential
    variable). Every row has a generator of its own: rows do not depend on one another, however they are batched."""

    def __init__(
        self, seeds: Sequence[int], temperature: float, top_p: float, device: torch.device, *, top_k: int | None = None
    ) -> None:
        self._temperature, self._device = temperature, device
        likeliest = [TopKLogitsWarper(top_k)] if top_k else []
        self._filters = [*likeliest, *([TopPLogitsWarper(top_p)] if top_p < 1 else [])]
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Called by ``generate`` for every token: (rows, vocabulary)."""
        scores = scores.float() / self._temperature
        for keep in self._filters:
            scores = keep(input_ids, scores)
        rows = [torch.empty(scores.shape[1], device=self._device) for _ in self._generators]
        noise = [row.exponential_(generator=generator) for row, generator in zip(rows, self._generators, strict=True)]
        return scores - torch.stack(noise).log()


class StopAtStrings(StoppingCriteria):
    """Criterion that ends a row whose text ends in a stop string, wherever the tokens' borders are."""

    def __init__(self, tokenizer: Any, stops: Sequence[str], n_prompt: int) -> None:
        self._tokenizer, self._stops, self._n_prompt = tokenizer, tuple(stops), n_prompt
        self._n_tail = 4 + max(map(len, stops))

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Called by ``generate`` after every token; True for rows that are done."""
        start = max(self._n_prompt, input_ids.shape[1] - self._n_tail)
        tails = self._tokenizer.batch_decode(input_ids[:, start:], skip_special_tokens=True)
        return torch.tensor([any(stop in tail for stop in self._stops) for tail in tails], device=input_ids.device)
