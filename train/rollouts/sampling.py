"""What happens to a turn while the model writes it: greedy inside code, stopped where it ends or goes in circles.

GRPO-ATS (Thyme §4.3): temperature 0 inside code, the trainer's temperature outside. With transformers this is a logits
processor that leaves only the most likely token; with vLLM, ``segments.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from tokenizers.decoders import DecodeStream
from transformers import LogitsProcessor, StoppingCriteria

from pipelines.protocols import ParsedTurn, Protocol
from train.rollouts.repetition import Repetition

Ending = Literal["", "code", "said", "full", "repetition"]
"""Why a turn is over: its code is complete, the model ended it, no token is left, it goes in circles."""


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
        """``n_left`` tokens may be written; ``ends`` are the tokens that end a turn.

        ``repetition`` goes on over all turns of a rollout. ``on_code`` is told a complete program at once, so that it
        can run while other rollouts of the batch are still being written.
        """
        self._backend, self._stream = tokenizer.backend_tokenizer, protocol.stream()
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._n_left, self._ends, self._repetition, self._on_code = n_left, ends, repetition, on_code
        self.n_tokens = 0
        self.ending: Ending = "" if n_left > 0 else "full"

    @property
    def n_left(self) -> int:
        """Tokens that may still be written."""
        return self._n_left - self.n_tokens

    @property
    def in_code(self) -> bool:
        """Whether the next token belongs to a program."""
        return self._stream.in_code

    def see(self, token: int) -> None:
        """The next token; nothing is looked at after the turn's ending."""
        if self.ending:
            return
        self.n_tokens += 1
        if token in self._ends:
            self.ending = "said"
        else:
            self._read(self._decoder.step(self._backend, token) or "")
        if not self.ending and self.n_left <= 0:
            self.ending = "full"

    def _read(self, text: str) -> None:
        self._stream.feed(text)
        if self._stream.ended:
            self.ending = "code"
            turn = self._stream.finish()
            if self._on_code is not None and isinstance(turn, ParsedTurn) and turn.code is not None:
                self._on_code(turn.code)
        elif self._repetition is not None and self._repetition.feed(text):
            self.ending = "repetition"


class GreedyInCode(LogitsProcessor):
    """Leaves only the most likely token of every row that is inside code."""

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
    """Shows every new token to its row's watcher, and stops the rows whose turn is over."""

    def __init__(self, watchers: Sequence[TurnWatcher]) -> None:
        self._watchers = watchers

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        """(rows,) of bool."""
        for watcher, token in zip(self._watchers, input_ids[:, -1].tolist(), strict=True):
            watcher.see(token)
        return torch.tensor([bool(watcher.ending) for watcher in self._watchers], device=input_ids.device)
