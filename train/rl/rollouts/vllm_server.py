"""Requests to a vLLM server, through TRL's client: many at a time, each for one rollout.

A request that fails is repeated as TRL's client does (five times, with growing pauses; errors 500, 502 and 503 three
times). What still fails ends the training with a checkpoint. The weights arrive over TRL's own NCCL transfer.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from darkroom.train.rl.rollouts.vllm_ats import Segment, stop_arguments
from darkroom.train.runs import EngineDown, TrainError

T = TypeVar("T")
_MOST_REQUESTS = 256
"""At a time, each in a thread that waits; as many as vLLM runs at a time by default."""
_MOST_CHARS = 300
"""Of an answer's text in an error."""


class VllmServer:
    """The server that TRL's ``VLLMGeneration`` talks to; every process of a training has its own connections."""

    def __init__(self, generation: Any) -> None:
        self._generation = generation
        self._client = getattr(generation, "vllm_client", None) or _own_client(generation)
        self._client.session.get_adapter(self._client.base_url).init_poolmanager(1, _MOST_REQUESTS)
        self._threads = ThreadPoolExecutor(_MOST_REQUESTS, thread_name_prefix="darkroom-vllm")

    async def image_features(self, images: Sequence[Any]) -> Any:
        """What the server made of the images, for ``generate``. Raises ``EngineDown``."""
        return await self._call(lambda: self._client.image_features([list(images)])[0])

    async def generate(
        self, ids: Sequence[int], features: Any, segment: Segment, *, n_tokens: int, seed: int
    ) -> tuple[list[int], list[list[float | None]]]:
        """The tokens of a segment after ``ids``, and their logprobs. Raises ``EngineDown``."""
        of, ids = self._generation, list(ids)
        arguments = {
            "n": 1,
            "repetition_penalty": of.repetition_penalty,
            "temperature": 0.0 if segment.greedy else of.temperature,
            "top_p": of.top_p,
            "top_k": of.top_k,
            "min_p": of.min_p or 0.0,
            "max_tokens": n_tokens,
            "logprobs": of.logprobs,
            "structured_outputs_regex": of.structured_outputs_regex,
            "generation_kwargs": {**of.generation_kwargs, **stop_arguments(segment), "seed": seed},
        }
        placed = None if features is None else [of._place_features(features, ids)]
        output = await self._call(lambda: self._client.generate(prompts=[ids], features=placed, **arguments))
        return output["completion_ids"][0], output["logprobs"][0]

    def sync_weights(self) -> None:
        """Hands the weights over: all processes call it, the first one sends. Raises ``EngineDown``."""
        with self._failures():
            self._generation.sync_weights()

    async def _call(self, request: Callable[[], T]) -> T:
        with self._failures():
            return await asyncio.get_running_loop().run_in_executor(self._threads, request)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # TRL's client raises Exception itself for a failed request
            raise EngineDown(self._client.base_url, _one_line(error)) from error


def _own_client(generation: Any) -> Any:
    """TRL gives only the first process a client."""
    from trl.generation.vllm_client import VLLMClient

    url = generation.server_base_url or f"http://{generation.server_host}:{generation.server_port}"
    return VLLMClient(base_url=url, connection_timeout=generation.server_timeout)


def require_nccl() -> None:
    """Raises ``TrainError`` where vLLM cannot send weights from this process.

    vLLM 0.31 itself sends nothing then and says so nowhere; a server that receives nothing either generates with what
    its memory happens to hold (seen with NCCL 2.28).
    """
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
    """What TRL says about vLLM while a trainer is built becomes a ``TrainError``, one line."""
    try:
        yield
    except Exception as error:
        if "vLLM" not in str(error) or isinstance(error, TrainError):
            raise
        raise TrainError(f"--engine {engine}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"{type(error).__name__}: {text[:_MOST_CHARS]}{'…' if len(text) > _MOST_CHARS else ''}"
