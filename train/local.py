"""A checkpoint folder as a policy: it generates in this process with transformers, on a CPU or a GPU.

    policy = LocalPolicy(Path("data/checkpoints/grpo"), store, sampling=Sampling(temperature=0.0))
    completion = await policy.write(turn)

Calls that wait at the same time are generated as one batch. A row's draw depends on its turn's seed alone: noise from
the row's own generator is added to the logits and the greatest is taken (the Gumbel-max trick), so that a turn is
written the same in whatever batch it stands. On a GPU in bfloat16 the logits themselves differ by a rounding error
between batches; the ledger keeps what was written first. The weights are loaded when the first turn has to be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.images import ImageStore
from pipelines.layouts.trl import content_parts
from pipelines.messages import Picture
from pipelines.policies import Completion, Identity, PolicyFault, Turn
from pipelines.records import Usage
from train.checkpoints import folder_digest
from train.faults import TrainFault
from train.models import is_too_thin, load_model, load_processor, require_model, suppressed_tokens

_GATHER_SECONDS = 0.02
"""How long a batch waits for turns that are about to be asked for."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How turns are drawn; temperature 0 takes the likeliest token. ``max_tokens`` is for one turn."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024


class _Loaded(NamedTuple):
    """The checkpoint in memory; ``ends`` are the tokens with which it ends a turn."""

    model: Any
    processor: Any
    ends: frozenset[int]
    most_tokens: int


class _Waiting(NamedTuple):
    turn: Turn
    written: asyncio.Future[Completion]


class LocalPolicy:
    """The model in ``folder``. Raises ``TrainFault`` when there is none that the templates fit."""

    def __init__(
        self,
        folder: Path,
        store: ImageStore,
        *,
        sampling: Sampling | None = None,
        batch_size: int = 8,
        max_pixels: int | None = None,
    ) -> None:
        """``max_pixels``: larger pictures are scaled down to so many (default: the model's own limit)."""
        require_model(folder)
        self._folder, self._store = folder, store
        self._sampling = sampling or Sampling()
        self._batch_size, self._max_pixels = batch_size, max_pixels
        self._queue: list[_Waiting] = []
        self._worker: asyncio.Task[None] | None = None
        # one thread for all: how many of its own torch uses is set per thread (train/models.py)
        self._thread = ThreadPoolExecutor(1, "generation")

    @cached_property
    def identity(self) -> Identity:
        """The folder's name; as its revision the digest of its files."""
        sampling = {**asdict(self._sampling), "max_pixels": self._max_pixels}
        return Identity("local", self._folder.name, folder_digest(self._folder), sampling)

    @property
    def concurrency(self) -> int:
        """Two batches: one is generated while the programs of the other run."""
        return 2 * self._batch_size

    async def check(self) -> None:
        """The folder was looked at when the policy was made."""

    async def write(self, turn: Turn) -> Completion:
        """The next turn; of a conversation that fills the model's context an empty one, cut off.

        Raises ``PolicyFault`` for a picture that the model's processor does not take.
        """
        for picture in _pictures(turn):
            if is_too_thin(picture.width, picture.height):
                raise PolicyFault(f"a picture of {picture.width}x{picture.height} pixels is too thin to be shown")
        waiting = _Waiting(turn, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await waiting.written

    async def close(self) -> None:
        """Waits for the batch that is being generated, if any; nothing can be written afterwards."""
        if self._worker is not None and not self._worker.done():
            await self._worker
        self._thread.shutdown()

    async def _work(self) -> None:
        while self._queue:
            await asyncio.sleep(_GATHER_SECONDS)
            batch = [self._queue.pop(0) for _ in range(min(self._batch_size, len(self._queue)))]
            try:
                turns = [waiting.turn for waiting in batch]
                made = await asyncio.get_running_loop().run_in_executor(self._thread, self._written, turns)
            except Exception as fault:  # noqa: BLE001  # raised where each turn is waited for
                for waiting in batch:
                    if not waiting.written.done():  # else nobody waits any more
                        waiting.written.set_exception(fault)
                continue
            for waiting, one in zip(batch, made, strict=True):
                if not waiting.written.done():
                    waiting.written.set_result(one)

    def _written(self, turns: Sequence[Turn]) -> list[Completion]:
        """A completion for each turn."""
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

    def _generated(self, turns: Sequence[Turn], inputs: Any) -> list[Completion]:
        import torch

        from train.drawing import EndsTurn, SeededDraw

        loaded, width = self._loaded, inputs["input_ids"].shape[1]
        seeds = [turn.seed for turn in turns]
        draw = SeededDraw(seeds, self._sampling.temperature, self._sampling.top_p, loaded.model.device)
        stops = sorted({stop for turn in turns for stop in turn.stop})
        try:
            with torch.inference_mode():
                made = loaded.model.generate(
                    **inputs.to(loaded.model.device),
                    max_new_tokens=min(self._sampling.max_tokens, loaded.most_tokens - width),
                    logits_processor=[draw] if self._sampling.temperature > 0 else [],
                    stopping_criteria=[EndsTurn(loaded.processor.tokenizer, stops, width)] if stops else [],
                )
        except torch.cuda.OutOfMemoryError as fault:
            raise TrainFault(
                f"{len(turns)} conversations of up to {width} tokens do not fit into the GPU's memory; set a smaller "
                "--batch-size, or --max-pixels"
            ) from fault
        n_prompt = inputs["attention_mask"].sum(dim=1).tolist()
        return [self._completion(made[n, width:].tolist(), turn, n_prompt[n]) for n, turn in enumerate(turns)]

    def _completion(self, tokens: list[int], turn: Turn, n_prompt: int) -> Completion:
        loaded = self._loaded
        end = next((place for place, token in enumerate(tokens) if token in loaded.ends), None)
        text = loaded.processor.tokenizer.decode(tokens[:end], skip_special_tokens=True)
        cuts = [found + len(stop) for stop in turn.stop if (found := text.find(stop)) >= 0]
        usage = Usage(calls=1, prompt_tokens=n_prompt, completion_tokens=len(tokens) if end is None else end + 1)
        return Completion(text[: min(cuts, default=len(text))], bool(cuts) or end is not None, usage)

    def _inputs(self, turns: Sequence[Turn]) -> Any:
        processor = self._loaded.processor
        texts = [
            processor.apply_chat_template(_messages(turn), add_generation_prompt=True, tokenize=False) for turn in turns
        ]
        images = [[self._store.open(image).convert("RGB") for image in _pictures(turn)] for turn in turns]
        shown = {"images": images} if any(images) else {}
        return processor(text=texts, **shown, padding=True, return_tensors="pt")

    @cached_property
    def _loaded(self) -> _Loaded:
        import torch
        from transformers import GenerationConfig

        processor = load_processor(self._folder, max_pixels=self._max_pixels)
        model = load_model(self._folder).to("cuda" if torch.cuda.is_available() else "cpu").eval()
        ends, pad = model.generation_config.eos_token_id, processor.tokenizer.pad_token_id
        ends = ends if isinstance(ends, list) else [processor.tokenizer.eos_token_id if ends is None else ends]
        # a checkpoint's own settings (a repetition penalty, say) are no part of ours: what counts is in `Sampling`
        settings = {"eos_token_id": ends, "pad_token_id": pad, "suppress_tokens": suppressed_tokens(processor)}
        model.generation_config = GenerationConfig.from_dict({"do_sample": False, **settings})
        most = model.config.get_text_config().max_position_embeddings
        return _Loaded(model, processor, frozenset([*ends, pad]), most)


def _messages(turn: Turn) -> list[dict[str, Any]]:
    """The conversation as the chat template has it, texts as in the data that was trained on."""
    return [{"role": said.role, "content": content_parts(said.parts)} for said in turn.messages]


def _pictures(turn: Turn) -> list[Any]:
    return [part.image for said in turn.messages for part in said.parts if isinstance(part, Picture)]
