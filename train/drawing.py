"""What generation is told besides the model: how a row draws its tokens, and where its turn ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor, StoppingCriteria, TopPLogitsWarper


class SeededDraw(LogitsProcessor):
    """Draws from the softmax by taking the greatest logit after noise; every row has a generator of its own.

    The logarithm of an exponential variable, negated, is Gumbel's: the argmax of logits with such noise is a sample of
    their softmax. Rows do not depend on one another, however they are batched.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float, device: torch.device) -> None:
        self._temperature, self._device = temperature, device
        self._nucleus = TopPLogitsWarper(top_p) if top_p < 1 else None
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Called by ``generate`` for every token: (rows, vocabulary)."""
        scores = scores.float() / self._temperature
        if self._nucleus is not None:
            scores = self._nucleus(input_ids, scores)
        rows = [torch.empty(scores.shape[1], device=self._device) for _ in self._generators]
        noise = [row.exponential_(generator=one) for row, one in zip(rows, self._generators, strict=True)]
        return scores - torch.stack(noise).log()


class EndsTurn(StoppingCriteria):
    """Ends a row when what it has written ends in a stop string, wherever the tokens' borders are."""

    def __init__(self, tokenizer: Any, stops: Sequence[str], n_prompt: int) -> None:
        self._tokenizer, self._stops, self._n_prompt = tokenizer, tuple(stops), n_prompt
        self._n_tail = 4 + max(map(len, stops))

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Called by ``generate`` after every token; True for rows that are done."""
        start = max(self._n_prompt, input_ids.shape[1] - self._n_tail)
        tails = self._tokenizer.batch_decode(input_ids[:, start:], skip_special_tokens=True)
        done = [any(stop in tail for stop in self._stops) for tail in tails]
        return torch.tensor(done, device=input_ids.device)
