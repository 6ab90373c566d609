"""Turns from vLLM: in segments for GRPO-ATS, from a server through TRL's client, and in the training process on a CPU.

vLLM takes one temperature per request, so a turn is generated in segments that end at its tags. Requests to a server
run in parallel, one a rollout; one that fails is repeated as by TRL's client (five times, with growing pauses; errors
500, 502 and 503 three times). What still fails ends the training with a checkpoint. The weights arrive over TRL's own
NCCL transfer.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import torch

from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.storage.row_files import by_key
from darkroom.sandbox.errors import raised_as
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout, EngineClock
from darkroom.train.rl.rollouts.sampling import TurnWatcher, changed
from darkroom.train.rl.rollouts.transcript import GeneratedTurn
from darkroom.train.runs import EngineDown, TrainError

Logprobs = list[float | None]


class Segment(NamedTuple):
    """The next request of a turn: up to the tag ``until``, which is part of it, at temperature 0 if ``greedy``."""

    until: str
    greedy: bool


def next_segment(watcher: TurnWatcher, *, stop: str, adaptive: bool) -> Segment:
    """The segment that follows the tokens of ``watcher``; ``stop`` is the tag that closes code."""
    greedy = watcher.in_code and adaptive
    return Segment(stop if greedy or not adaptive else stop.replace("</", "<", 1), greedy)


def read_segment(
    watcher: TurnWatcher, tokens: Sequence[int], chances: Sequence[Sequence[float | None]], *, greedy: bool
) -> tuple[list[int], Logprobs]:
    """Read the turn's tokens, with logprobs (None for greedy ones); a request that gives none ends the turn."""
    n_before = watcher.n_tokens
    for token in tokens:
        watcher.see(token)
    n_read = watcher.n_tokens - n_before
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
    """Generate the next turn after each prompt by TRL's ``VLLMGeneration``; ``stops`` are the tags that close code.
    Requests of one kind (in code or not, same tag) go together."""
    ids: list[list[int]] = [[] for _ in prompts]
    logprobs: list[Logprobs] = [[] for _ in prompts]
    while active := [row for row, watcher in enumerate(watchers) if not watcher.ending]:
        kinds = by_key((next_segment(watchers[row], stop=stops[row], adaptive=adaptive), row) for row in active)
        for segment, rows in kinds.items():
            n_left = max(watchers[row].n_left for row in rows)
            temperature = 0.0 if segment.greedy else engine.temperature
            keywords = {**engine.generation_kwargs, **stop_arguments(segment)}
            with changed(engine, temperature=temperature, generation_kwargs=keywords, max_completion_length=n_left):
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
    """Leave one mark for each image of a prompt, which vLLM replaces with the image's tokens. Where all of them are
    there already, as for the trainer, it would add them once more, and put a second image where the first one is."""
    mark = engine.processing_class.image_token_id
    return [*ids[:1], *(token for before, token in pairwise(ids) if token != mark or before != mark)]


def stop_arguments(segment: Segment) -> dict[str, Any]:
    """The arguments by which vLLM ends a request with the segment."""
    return {"stop": [segment.until], "include_stop_str_in_output": True}


T = TypeVar("T")
_MOST_REQUESTS = 256
"""At a time, each in a thread that waits; as many as vLLM runs at a time by default."""
_MOST_CHARS = 300
"""Characters of an answer in an error."""


class VllmServer:
    """The server that TRL's ``VLLMGeneration`` talks to; every process of a training has its own connections."""

    def __init__(self, generation: Any) -> None:
        client: Any = getattr(generation, "vllm_client", None)
        if client is None:  # TRL gives only the first process one
            from trl.generation.vllm_client import VLLMClient

            url = generation.server_base_url or f"http://{generation.server_host}:{generation.server_port}"
            client = VLLMClient(base_url=url, connection_timeout=generation.server_timeout)
        self._generation, self._client = generation, client
        self._client.session.get_adapter(self._client.base_url).init_poolmanager(1, _MOST_REQUESTS)
        self._threads = ThreadPoolExecutor(_MOST_REQUESTS, thread_name_prefix="darkroom-vllm")

    async def image_features(self, images: Sequence[Any]) -> Any:
        """The server's features of the images, for ``generate``. Raises ``EngineDown``."""
        return await self._call(lambda: self._client.image_features([list(images)])[0])

    async def generate(
        self, ids: Sequence[int], features: Any, segment: Segment, *, n_tokens: int, seed: int
    ) -> tuple[list[int], list[list[float | None]]]:
        """Generate the tokens of a segment after ``ids``, with logprobs. Raises ``EngineDown``."""
        settings, ids = self._generation, list(ids)
        same_names = ("repetition_penalty", "top_p", "top_k", "logprobs", "structured_outputs_regex")
        arguments = {
            **{name: getattr(settings, name) for name in same_names},
            "n": 1,
            "max_tokens": n_tokens,
            "min_p": settings.min_p or 0.0,
            "temperature": 0.0 if segment.greedy else settings.temperature,
            "generation_kwargs": {**settings.generation_kwargs, **stop_arguments(segment), "seed": seed},
        }
        placed = None if features is None else [settings._place_features(features, ids)]
        output = await self._call(lambda: self._client.generate(prompts=[ids], features=placed, **arguments))
        return output["completion_ids"][0], output["logprobs"][0]

    def sync_weights(self) -> None:
        """Hand the weights over: all processes call it, the first one sends. Raises ``EngineDown``."""
        with raised_as(self._down, Exception):
            self._generation.sync_weights()

    async def _call(self, request: Callable[[], T]) -> T:
        with raised_as(self._down, Exception):  # TRL's client raises Exception itself for a failed request
            return await asyncio.get_running_loop().run_in_executor(self._threads, request)

    def _down(self, error: Exception) -> EngineDown:
        return EngineDown(self._client.base_url, _one_line(error))


def require_nccl() -> None:
    """Raise ``TrainError`` where vLLM cannot send weights from this process: vLLM 0.31 itself sends nothing then and
    reports nothing, and the server generates with what its memory happens to hold (seen with NCCL 2.28)."""
    from vllm import envs
    from vllm.distributed.device_communicators.pynccl_wrapper import NCCLLibrary

    try:
        NCCLLibrary()
    except (AttributeError, OSError, ValueError) as error:  # an old library, none, a torch without CUDA
        reason = _one_line(error)
    else:
        if not envs.VLLM_DISABLE_PYNCCL:
            return
        reason = "VLLM_DISABLE_PYNCCL is set"
    raise TrainError(
        f"--engine vllm_server: the server would get no weights, because vLLM cannot use NCCL here ({reason}). "
        "Install the NCCL of train/launch/vllm.lock, here and at the server, or name its library in VLLM_NCCL_SO_PATH"
    )


@contextmanager
def readable_errors(engine: str) -> Iterator[None]:
    """Turn TRL's errors about vLLM while a trainer is built into a ``TrainError`` of one line."""
    try:
        yield
    except Exception as error:
        if "vLLM" not in str(error) or isinstance(error, TrainError):
            raise
        raise TrainError(f"--engine {engine}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"{type(error).__name__}: {text[:_MOST_CHARS]}{'…' if len(text) > _MOST_CHARS else ''}"


def prepare_vllm() -> None:
    """Prepare vLLM in this process, on a CPU; called before a trainer makes its engine. The engine computes in float32
    as the trainer does, and is not compiled, for which it would need a C++ compiler. Where the CPU has AVX-512, vLLM
    0.31 computes with copies that oneDNN has packed, and drops the weights themselves. A later update fails then
    ("'Parameter' object has no attribute 'weight_loader'"), or does nothing (output head). Here torch computes."""
    from trl.generation import vllm_generation
    from vllm.model_executor.layers import utils

    def compute_with_weights(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = compute_with_weights
    engines: Any = vllm_generation
    engines.LLM = partial(engines.LLM, dtype="float32", enforce_eager=True)


@dataclass(slots=True)
class ServerTurns:
    """A ``TurnWriter`` that requests the turns of each rollout by itself: no rollout waits for another one. A turn's
    seed follows from the training's seed, step, prompt, rollout and round, that of a request also from its number in
    the turn, so that the order in which requests and code end has no effect, if the engine runs batch invariant."""

    server: VllmServer
    _: KW_ONLY
    tokenizer: Any
    watcher: Callable[[ActiveRollout], TurnWatcher]
    """Makes the watcher of a rollout's next turn."""
    clock: EngineClock
    adaptive: bool
    """Temperature 0 inside code."""
    _features: dict[tuple[str, int], asyncio.Future[Any]] = field(default_factory=dict)

    def end(self) -> None:
        """Do nothing: no rollout waits for another one."""

    async def next_turn(self, active: ActiveRollout, seed: int) -> GeneratedTurn:
        """Request the turn, segment by segment. Raises ``EngineDown``."""
        transcript, watcher = active.transcript, self.watcher(active)
        ids: list[int] = []
        logprobs: Logprobs = []
        with self.clock:
            features = await self._image_features(active)
            n_requests = 0
            while not watcher.ending:
                segment = next_segment(watcher, stop=active.protocol.stop[0], adaptive=self.adaptive)
                before, own = [*transcript.prompt, *transcript.ids, *ids], seed_from(seed, n_requests)
                tokens, chances = await self.server.generate(
                    before, features, segment, n_tokens=watcher.n_left, seed=own
                )
                read, read_logprobs = read_segment(watcher, tokens, chances, greedy=segment.greedy)
                ids += read
                logprobs += read_logprobs
                n_requests += 1
        return GeneratedTurn(ids, self.tokenizer.decode(ids, skip_special_tokens=True), watcher.ending, logprobs)

    async def _image_features(self, active: ActiveRollout) -> Any:
        """The features of all images so far, None without any; a prompt's are sent once for all of its rollouts."""
        images = active.transcript.all_images
        if not images:
            return None
        n_shown = len(active.transcript.images)
        key = (active.task.trajectory_id if n_shown else active.task.sample.sample_id, n_shown)
        if key not in self._features:
            self._features[key] = asyncio.ensure_future(self.server.image_features(images))
        return await asyncio.shield(self._features[key])
