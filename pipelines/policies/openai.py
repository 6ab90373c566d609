"""Any OpenAI-compatible endpoint: ``vllm serve``, ``transformers serve``, a commercial API.

The client is OpenAI's, on aiohttp; requests go through its HTTP client (``pipelines/policies/exchange.py``). Messages
keep their order (system, pictures, text, turns), so that an endpoint with a cache of prefixes reads each picture once.
"""

from __future__ import annotations

import asyncio
import math
import os
from typing import Any

import openai

from pipelines.images import ImageStore
from pipelines.messages import Message, Part, Picture, Text
from pipelines.policies.base import Completion, Frame, Identity, PolicyFault, PolicyUnavailable, Turn
from pipelines.policies.budget import Purse
from pipelines.policies.calls import Calls
from pipelines.policies.endpoint import Endpoint
from pipelines.policies.exchange import Exchange
from pipelines.policies.pictures import Pictures, PixelLimits
from pipelines.records import Usage
from pipelines.rejects import storable

__all__ = ["Endpoint", "OpenAIPolicy"]


class OpenAIPolicy:
    """A policy behind HTTP. ``purse`` is what it may spend; several policies may share one.

    >>> endpoint = Endpoint("http://127.0.0.1:8000/v1", "Qwen/Qwen2.5-VL-72B-Instruct", max_pixels=2_000_000)
    >>> policy = OpenAIPolicy(endpoint, store, purse=Purse(Budget(usd=20)))
    """

    def __init__(self, endpoint: Endpoint, store: ImageStore, *, purse: Purse | None = None) -> None:
        self.endpoint = endpoint
        self.purse = purse or Purse()
        self._pictures = Pictures(store, PixelLimits(endpoint.min_pixels, endpoint.max_pixels, endpoint.size_step))
        key = os.environ.get(endpoint.key_variable, "").strip()
        self._key = key
        self._missing_key = not key and not endpoint.is_local
        self._gives_several, self._has_given_several = endpoint.send_n, False
        self._calls = Calls(endpoint, self.purse, self._hidden)
        http = openai.DefaultAioHttpClient()
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=key or "none",
            timeout=endpoint.timeout_seconds,
            max_retries=0,  # retries are ours (pipelines/policies/retries.py): the SDK's know of no gate
            http_client=http,
        )
        self._exchange = Exchange(self._client, http, timeout_seconds=endpoint.timeout_seconds)

    @property
    def identity(self) -> Identity:
        """Model, revision and every setting that determines what is written."""
        return self.endpoint.identity

    @property
    def concurrency(self) -> int:
        """Rows to work on at once: a quarter more than calls, since some are at the ledger while others call. The gate
        sees to it that never more than ``endpoint.concurrency`` calls are in flight."""
        return math.ceil(1.25 * self.endpoint.concurrency)

    async def check(self) -> None:
        """Asks for the list of models: any answer but a refusal of the key means that the endpoint is there."""
        at = self.endpoint
        if self._missing_key:
            raise PolicyUnavailable(f"no key for {at.base_url}: set the environment variable {at.key_variable}")
        if self.purse.budget.usd is not None and not at.has_prices:
            raise PolicyUnavailable(
                f"a budget in USD needs the prices of {at.model}, and none is set: it would never end"
            )
        try:
            await self._client.with_options(timeout=10, max_retries=1).models.list()
        except (openai.AuthenticationError, openai.PermissionDeniedError) as fault:
            raise PolicyUnavailable(
                f"{at.base_url} refused the key in {at.key_variable} ({fault.status_code}); set a valid one"
            ) from fault
        except openai.APIConnectionError as fault:
            raise PolicyUnavailable(
                f"nothing answers at {at.base_url} ({type(fault).__name__}). Start the server there, or set "
                "DARKROOM_POLICY_URL to the one to use (DARKROOM_POLICY=oracle needs none)"
            ) from fault
        except openai.APIStatusError:
            return  # it answers; not every server lists its models (`transformers serve` without a cache does not)

    async def write(self, turn: Turn) -> Completion:
        """One chat completion. Raises ``PolicyFault``, or ``PolicyUnavailable`` when no further one can be had."""
        (completion,) = await self._written(turn, 1)
        return completion

    @property
    def gives_several(self) -> bool:
        """Whether the endpoint takes ``n``: as it is set, until it is seen that it does not."""
        return self._gives_several

    async def sample(self, turn: Turn, n: int) -> tuple[Completion, ...]:
        """Up to ``n`` chat completions of one request. Raises as ``write`` does.

        An endpoint that refuses ``n``, or gives one where several were asked for, is not asked for several again.
        """
        try:
            said = await self._written(turn, n)
        except PolicyFault:
            if self._has_given_several:
                raise
            self._gives_several = False  # the refusal may be for something else: then `write` meets it too
            return (await self.write(turn),)
        self._gives_several = self._has_given_several = self._has_given_several or len(said) > 1
        return said

    async def _written(self, turn: Turn, n: int) -> tuple[Completion, ...]:
        body = await self._request(turn)
        if n > 1:
            body["n"] = n
        frames = tuple(self._frame(part) for said in turn.messages for part in said.parts if isinstance(part, Picture))

        async def send() -> tuple[Completion, ...]:
            return self._completions(await self._exchange.ask(body), frames, n)

        return await self._calls.make(send, seed=turn.seed)

    async def close(self) -> None:
        """Closes the connections; what was spent is on record."""
        await asyncio.to_thread(self.purse.settle)
        self._pictures.close()
        await self._client.close()

    def _hidden(self, text: str) -> str:
        """``text`` without the key: a server may repeat it in what it says, and rejects are kept in tables."""
        return text.replace(self._key, "<key>") if self._key else text

    async def _request(self, turn: Turn) -> dict[str, Any]:
        at = self.endpoint
        body = {
            "model": at.model,
            "messages": [await self._message(said) for said in turn.messages],
            "temperature": at.temperature,
            "top_p": at.top_p,
            "max_tokens": at.max_tokens,
            "seed": turn.seed,
        }
        if at.send_stop:
            body["stop"] = list(turn.stop)
        if at.send_schema and turn.schema is not None:
            described = {"name": "answer", "schema": dict(turn.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        return {**body, **at.extra_body}

    async def _message(self, said: Message) -> dict[str, Any]:
        if said.role != "user":
            text = "".join(part.text for part in said.parts if isinstance(part, Text))
            return {"role": said.role, "content": text}
        return {"role": said.role, "content": [await self._part(part) for part in said.parts]}

    async def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        return {"type": "image_url", "image_url": {"url": await self._pictures.url(part.image)}}

    def _frame(self, part: Picture) -> Frame:
        return Frame(part.image.sha256, *self._pictures.size(part.image))

    def _completions(self, response: Any, frames: tuple[Frame, ...], n: int) -> tuple[Completion, ...]:
        """Takes the answer apart, ``n`` choices at most; what is missing makes it none. Raises ``PolicyFault``."""
        try:
            choices = response["choices"][:n]
            texts = [storable(choice["message"].get("content") or "") for choice in choices]
            finished = [choice.get("finish_reason") != "length" for choice in choices]
            usages = self._usages(response.get("usage") or {}, len(choices))
        except (TypeError, KeyError, AttributeError):
            raise PolicyFault(f"an answer that is no completion: {response}") from None
        if not texts:
            raise PolicyFault(f"an answer without a choice: {response}")
        return tuple(
            Completion(text, is_whole, usage, frames)
            for text, is_whole, usage in zip(texts, finished, usages, strict=True)
        )

    def _usages(self, used: dict[str, Any], n: int) -> list[Usage]:
        """A request's usage, shared among its ``n`` answers: the first has the prompt and what cannot be divided."""
        whole = self._usage(used)
        each = whole.completion_tokens // max(n, 1)
        rest = [self._usage({"completion_tokens": each}, n_calls=0)] * (n - 1)
        return [whole - sum(rest, Usage()), *rest] if n else []

    def _usage(self, used: dict[str, Any], n_calls: int = 1) -> Usage:
        prompt, completion = (used.get(name) or 0 for name in ("prompt_tokens", "completion_tokens"))
        at = self.endpoint
        cost = prompt * at.usd_per_million_prompt_tokens + completion * at.usd_per_million_completion_tokens
        return Usage(calls=n_calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost / 1e6)
