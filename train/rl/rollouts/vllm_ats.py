"""GRPO-ATS with vLLM, which takes one temperature per request: a turn is generated in segments that end at its tags."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from darkroom.train.rl.rollouts.sampling import TurnWatcher

Logprobs = list[float | None]


class Segment(NamedTuple):
    """The next request of a turn: up to the tag ``until``, which is part of it, at temperature 0 if ``greedy``."""

    until: str
    greedy: bool


def next_segment(watcher: TurnWatcher, *, stop: str, adaptive: bool) -> Segment:
    """What follows what ``watcher`` has seen; ``stop`` is the tag that closes code."""
    greedy = watcher.in_code and adaptive
    return Segment(stop if greedy or not adaptive else stop.replace("</", "<", 1), greedy)


def read_segment(
    watcher: TurnWatcher, tokens: Sequence[int], chances: Sequence[Sequence[float | None]], *, greedy: bool
) -> tuple[list[int], Logprobs]:
    """The tokens that belong to the turn, with logprobs (None for greedy ones); a request that gives none ends it."""
    before = watcher.n_tokens
    for token in tokens:
        watcher.see(token)
    n_read = watcher.n_tokens - before
    if not n_read and not watcher.ending:
        watcher.ending = "said"
    return list(tokens[:n_read]), [None if greedy else chance[0] for chance in chances[:n_read]]


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
        kinds: dict[Segment, list[int]] = defaultdict(list)
        for row in going:
            kinds[next_segment(watchers[row], stop=stops[row], adaptive=adaptive)].append(row)
        for segment, rows in kinds.items():
            n_left = max(watchers[row].n_left for row in rows)
            with _asked(engine, segment, n_tokens=n_left):
                _, generated, probabilities, _ = engine.generate(
                    prompts=[_one_mark_per_image(prompts[row] + ids[row], engine) for row in rows],
                    images=None if images is None else [list(images[row]) or None for row in rows],
                    num_generations=1,
                )
            for row, tokens, chances in zip(rows, generated, probabilities, strict=True):
                read, read_logprobs = read_segment(watchers[row], tokens, chances, greedy=segment.greedy)
                ids[row] += read
                logprobs[row] += read_logprobs
    return ids, logprobs


def _one_mark_per_image(ids: Sequence[int], engine: Any) -> list[int]:
    """As vLLM takes a prompt: it writes the tokens of an image in the place of one mark. Where all of them are there
    already, as in what the trainer reads, it adds them once more, and puts a second image where the first one is."""
    mark = engine.processing_class.image_token_id
    return [*ids[:1], *(token for before, token in pairwise(ids) if token != mark or before != mark)]


@contextmanager
def _asked(engine: Any, segment: Segment, *, n_tokens: int) -> Iterator[None]:
    """Within, the engine's requests are for this segment, of ``n_tokens`` at most."""
    names = ("temperature", "generation_kwargs", "max_completion_length")
    before = {name: getattr(engine, name) for name in names}
    engine.generation_kwargs = {**before["generation_kwargs"], **stop_arguments(segment)}
    engine.max_completion_length = n_tokens
    if segment.greedy:
        engine.temperature = 0.0
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(engine, name, value)


def stop_arguments(segment: Segment) -> dict[str, Any]:
    """vLLM's arguments by which a request ends with the segment."""
    return {"stop": [segment.until], "include_stop_str_in_output": True}
