"""GRPO-ATS with vLLM: a turn in segments, sampled until code begins, then greedy until it ends (Thyme §4.3).

vLLM takes one temperature per request, and no rule of ours between two tokens. So a request ends at the tag that opens
code (``stop``, kept in the output), the next one goes on with temperature 0 until the tag that closes it. Tokens of
greedy segments get no log-probability: how they were chosen says nothing of how likely the policy holds them, and TRL
leaves such tokens out of its importance correction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from train.rollouts.sampling import TurnWatcher

Logprobs = list[float | None]


def in_segments(
    engine: Any,
    prompts: Sequence[list[int]],
    images: Sequence[list[Any]] | None,
    watchers: Sequence[TurnWatcher],
    *,
    stops: Sequence[str],
    adaptive: bool,
) -> tuple[list[list[int]], list[Logprobs]]:
    """The next turn after each prompt, by TRL's ``VLLMGeneration``; ``stops`` are the tags that close code.

    Requests of one kind (in code or not, same tag) go together.
    """
    ids: list[list[int]] = [[] for _ in prompts]
    logprobs: list[Logprobs] = [[] for _ in prompts]
    while going := [row for row, watcher in enumerate(watchers) if not watcher.ending]:
        kinds: dict[tuple[bool, str], list[int]] = defaultdict(list)
        for row in going:
            kinds[watchers[row].in_code and adaptive, stops[row]].append(row)
        for (greedy, stop), rows in kinds.items():
            until = stop if greedy or not adaptive else stop.replace("</", "<", 1)
            n_left = max(watchers[row].n_left for row in rows)
            with _asked(engine, until=until, greedy=greedy, n_tokens=n_left):
                _, said, given, _ = engine.generate(
                    prompts=[prompts[row] + ids[row] for row in rows],
                    images=None if images is None else [list(images[row]) or None for row in rows],
                    num_generations=1,
                )
            for row, tokens, chances in zip(rows, said, given, strict=True):
                n_read = _read(watchers[row], tokens)
                ids[row] += tokens[:n_read]
                logprobs[row] += [None if greedy else chance[0] for chance in chances[:n_read]]
    return ids, logprobs


def _read(watcher: TurnWatcher, tokens: Sequence[int]) -> int:
    """How many of ``tokens`` belong to the turn; a request that gives none ends it."""
    before = watcher.n_tokens
    for token in tokens:
        watcher.see(token)
    if watcher.n_tokens == before and not watcher.ending:
        watcher.ending = "said"
    return watcher.n_tokens - before


@contextmanager
def _asked(engine: Any, *, until: str, greedy: bool, n_tokens: int) -> Iterator[None]:
    """Within, the engine's requests end at ``until`` or after ``n_tokens``."""
    names = ("temperature", "generation_kwargs", "max_completion_length")
    before = {name: getattr(engine, name) for name in names}
    engine.generation_kwargs = {**before["generation_kwargs"], "stop": [until], "include_stop_str_in_output": True}
    engine.max_completion_length = n_tokens
    if greedy:
        engine.temperature = 0.0
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(engine, name, value)
