"""Watches a turn while it is generated: greedy inside code, stopped at its end and at repetition. GRPO-ATS (Thyme §4.3)
has temperature 0 inside code: here by a logits processor of transformers, for vLLM in ``vllm_engine.py``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Literal

import torch
from tokenizers.decoders import DecodeStream
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from darkroom.pipelines.models.protocols import ParsedTurn, Protocol
from darkroom.pipelines.verification.repetition import RULES, Repetition, RepetitionRule
from darkroom.train.rl.settings import GrpoSettings

Ending = Literal["", "code", "said", "full", "repetition"]
"""Why a turn has ended: complete code, the model's end token, the token limit, repetition."""


def repetition_rule(settings: GrpoSettings) -> RepetitionRule | None:
    """The rule that ends rollouts in circles; None for none. A least length is for texts without letters, too."""
    if settings.repetition == "off":
        return None
    changed: dict[str, Any] = {"share": settings.repetition_share, "times": settings.repetition_times}
    if settings.repetition_chars is not None:
        changed["windows"] = (settings.repetition_chars,)
    if settings.repetition_min_chars is not None:
        changed |= dict.fromkeys(("min_chars", "min_chars_without_letters"), settings.repetition_min_chars)
    rule = RULES[settings.repetition or "darkroom"]
    return replace(rule, **{name: value for name, value in changed.items() if value is not None})


class TurnWatcher:
    """One turn of one rollout, token by token."""

    def __init__(
        self,
        tokenizer: Any,
        protocol: Protocol,
        *,
        n_left: int,
        ends: frozenset[int],
        repetition: Repetition | None = None,
        on_code: Callable[[str], None] | None = None,
    ) -> None:
        """``n_left`` tokens may be written; ``ends`` are the tokens that end a turn. ``repetition`` goes on over all
        turns of a rollout. ``on_code`` receives complete code at once, to run while other turns are generated."""
        self._backend, self._stream = tokenizer.backend_tokenizer, protocol.stream()
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._n_left, self._ends, self._repetition, self._on_code = n_left, ends, repetition, on_code
        self.n_tokens = 0
        self.ending: Ending = "" if n_left > 0 else "full"

    @property
    def n_left(self) -> int:
        return self._n_left - self.n_tokens

    @property
    def in_code(self) -> bool:
        return self._stream.in_code

    def see(self, token: int) -> None:
        """Read the next token; none after the turn's ending."""
        if self.ending:
            return
        self.n_tokens += 1
        if token in self._ends:
            self.ending = "said"
            return
        text = self._decoder.step(self._backend, token) or ""
        self._stream.feed(text)
        if self._stream.ended:
            self.ending = "code"
            turn = self._stream.finish()
            if self._on_code is not None and isinstance(turn, ParsedTurn) and turn.code is not None:
                self._on_code(turn.code)
        elif self._repetition is not None and self._repetition.feed(text):
            self.ending = "repetition"
        elif self.n_left <= 0:
            self.ending = "full"


class GreedyInCode(LogitsProcessor):
    """Processor that leaves only the most likely token of every row that is inside code."""

    def __init__(self, watchers: Sequence[TurnWatcher]) -> None:
        self._watchers = watchers

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """``scores`` is (rows, vocabulary)."""
        rows = [row for row, watcher in enumerate(self._watchers) if watcher.in_code and not watcher.ending]
        if rows:
            best = scores[rows].argmax(dim=-1, keepdim=True)
            scores[rows] = torch.full_like(scores[rows], -torch.inf).scatter(1, best, 0.0)
        return scores


class StopWhenOver(StoppingCriteria):
    """Criterion that shows every new token to its row's watcher, and stops the rows whose turn is over."""

    def __init__(self, watchers: Sequence[TurnWatcher]) -> None:
        self._watchers = watchers

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        """(rows,) of bool."""
        for watcher, token in zip(self._watchers, input_ids[:, -1].tolist(), strict=True):
            watcher.see(token)
        return torch.tensor([bool(watcher.ending) for watcher in self._watchers], device=input_ids.device)


@contextmanager
def changed(holder: Any, **values: Any) -> Iterator[None]:
    """Give attributes of ``holder`` other values for a while."""
    before = {name: getattr(holder, name) for name in values}
    vars(holder).update(values)
    try:
        yield
    finally:
        vars(holder).update(before)


def watched(
    model: Any, watchers: Sequence[TurnWatcher], *, adaptive: bool, in_step: bool = False
) -> AbstractContextManager[None]:
    """Let ``model`` generate with these watchers, and with temperature 0 inside code where it is ``adaptive``.
    ``in_step``: until the last process has finished, as transformers 5.23 does by itself for ZeRO-3, not for FSDP 2."""
    generate, greedy = model.generate, [GreedyInCode(watchers)] if adaptive else []
    together = {"synced_gpus": True} if in_step else {}

    def generate_watched(**inputs: Any) -> Any:
        rules = LogitsProcessorList([*greedy, *(inputs.pop("logits_processor", None) or ())])
        stops = StoppingCriteriaList([StopWhenOver(watchers)])
        return generate(**inputs, logits_processor=rules, stopping_criteria=stops, **together)

    return changed(model, generate=generate_watched)


def greedily(trainer: Any) -> AbstractContextManager[None]:
    """Let a trainer of TRL's take the most likely token, without penalty of repetition, as in an evaluation."""
    # none is left unset: transformers would take it from the model's own
    greedy = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50, "repetition_penalty": 1.0}
    if trainer.use_vllm:
        return changed(trainer.vllm_generation, temperature=0.0, repetition_penalty=1.0)
    keywords = {**trainer.generation_kwargs, **greedy, "min_p": None}
    config = GenerationConfig(**keywords, disable_compile=True)  # type: ignore[no-untyped-call]
    return changed(trainer, generation_kwargs=keywords, generation_config=config)
