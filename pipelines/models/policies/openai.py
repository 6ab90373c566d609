"""Any OpenAI-compatible endpoint: ``vllm serve``, ``transformers serve``, a commercial API.

Messages keep their order (system, images, text, turns), so that an endpoint with a prefix cache reads each image once.
"""

import asyncio
import math
import os
from typing import Any, Self

from darkroom.pipelines.models.messages import ImagePart
from darkroom.pipelines.models.policies.answers import EndpointAnswer, read_answer, warn_of_oddities
from darkroom.pipelines.models.policies.base import (
    Completion,
    CompletionRequest,
    PolicyError,
    PolicyUnavailable,
    SentImage,
)
from darkroom.pipelines.models.policies.budget import BudgetPool, SpendTracker
from darkroom.pipelines.models.policies.images import ImageEncoder, PixelLimits
from darkroom.pipelines.models.policies.settings import Endpoint, EndpointSettings
from darkroom.pipelines.models.policies.shared_calls import SharedCalls
from darkroom.pipelines.records import Usage
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger


class OpenAIPolicy:
    """A policy behind HTTP. Several policies may share a ``budget_pool``.

    >>> endpoint = Endpoint("http://127.0.0.1:8000/v1", "Qwen/Qwen2.5-VL-72B-Instruct", max_pixels=2_000_000)
    >>> policy = OpenAIPolicy(endpoint, store, budget_pool=BudgetPool(SpendLimit(usd=20)))
    """

    another = "set DARKROOM_POLICY_URL to the one to use (DARKROOM_POLICY=oracle needs none)"
    """How to have another endpoint asked, for the error where nothing answers."""

    def __init__(
        self,
        endpoint: Endpoint,
        store: ImageStore,
        *,
        budget_pool: BudgetPool | None = None,
        shared: SharedCalls | None = None,
    ) -> None:
        # aiohttp takes half a second, which commands that call no endpoint are spared
        from darkroom.pipelines.models.policies.calls import EndpointCalls
        from darkroom.pipelines.models.policies.http_client import ChatClient

        self.endpoint = endpoint
        self.identity = endpoint.identity
        """Model, revision and every setting that determines the completions."""
        self.budget_pool = budget_pool or BudgetPool()
        self._images = ImageEncoder(store, PixelLimits(endpoint.min_pixels, endpoint.max_pixels, endpoint.size_step))
        key = os.environ.get(endpoint.key_variable, "").strip()
        self._key = key
        self._missing_key = not key and not endpoint.is_local
        self._gives_several, self._has_given_several = endpoint.send_n, False
        self._shared = shared
        self._calls = EndpointCalls(endpoint, self.budget_pool, self._without_key, shared)
        self._chat = ChatClient(endpoint.base_url, key)

    @classmethod
    def on_ledger(cls, settings: EndpointSettings, store: ImageStore, ledger: Ledger, *, purse: str) -> Self:
        """A policy as ``settings`` say; processes on ``ledger`` share its calls, and the budget under ``purse``."""
        at, shared = settings.endpoint, None
        if settings.shared_concurrency is not None:
            shared = SharedCalls(ledger, f"{at.base_url} {at.model}", settings.shared_concurrency)
        pool = BudgetPool(settings.budget, tracker=SpendTracker(ledger, purse))
        return cls(at, store, budget_pool=pool, shared=shared)

    @property
    def concurrency(self) -> int:
        """Rows to work on at once: a quarter more than calls, since some are at the ledger while others call. At most
        ``endpoint.concurrency`` calls are in flight."""
        return math.ceil(1.25 * self.endpoint.concurrency)

    async def check(self) -> None:
        """Requests the list of models: any answer but a rejected key means that the endpoint is up."""
        import aiohttp

        from darkroom.pipelines.models.policies.failures import REJECTED_KEY

        at = self.endpoint
        if self._missing_key:
            raise PolicyUnavailable(f"no key for {at.base_url}: set the environment variable {at.key_variable}")
        if self.budget_pool.limit.usd is not None and not at.has_prices:
            raise PolicyUnavailable(
                f"a budget in USD needs the prices of {at.model}, and none is set: it would never end"
            )
        try:
            status = await self._chat.models_status()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PolicyUnavailable(
                f"nothing answers at {at.base_url} ({type(error).__name__}). Start the server there, or {self.another}"
            ) from error
        if status in REJECTED_KEY:
            raise PolicyUnavailable(f"{at.base_url} refused the key in {at.key_variable} ({status}); set a valid one")
        # else it answers; not every server lists its models (`transformers serve` without a cache does not)

    async def write(self, request: CompletionRequest) -> Completion:
        """One chat completion. Raises ``PolicyError``, or ``PolicyUnavailable`` when no further one is possible."""
        (completion,) = await self._complete(request, 1)
        return completion

    @property
    def gives_several(self) -> bool:
        """Whether the endpoint supports ``n``: as set, until a request shows that it does not."""
        return self._gives_several

    async def sample(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        """Up to ``n`` chat completions of one request. Raises as ``write`` does.

        An endpoint that rejects ``n``, or returns one answer to it, gets no such request again.
        """
        try:
            completions = await self._complete(request, n)
        except PolicyError:
            if self._has_given_several:
                raise
            self._gives_several = False  # the error may have another cause: then `write` meets it too
            return (await self.write(request),)
        self._gives_several = self._has_given_several = self._has_given_several or len(completions) > 1
        return completions

    async def _complete(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        parts = (part for message in request.messages for part in message.parts)
        images = [part.image for part in parts if isinstance(part, ImagePart)]
        frames = tuple(SentImage(image.sha256, *self._images.size(image)) for image in images)
        urls = {image.sha256: await self._images.url(image) for image in images}
        fields = self._fields(request) if n == 1 else {**self._fields(request), "n": n}

        async def send() -> tuple[Completion, ...]:
            answer = await self._chat.post(fields, request.messages, urls)
            return self._completions(answer, frames, n)

        return await self._calls.make(send, seed=request.seed)

    async def close(self) -> None:
        """Records what was spent, gives leased calls back and closes the connections."""
        if self._shared is not None:
            await self._shared.close()
        await asyncio.to_thread(self.budget_pool.settle)
        self._images.close()
        await self._chat.close()

    def _without_key(self, text: str) -> str:
        """``text`` without the key: a server may repeat it in an error, and rejects are stored in tables."""
        return text.replace(self._key, "<key>") if self._key else text

    def _fields(self, request: CompletionRequest) -> dict[str, Any]:
        """All of the request's body but the messages."""
        at = self.endpoint
        fields: dict[str, Any] = {
            "model": at.model,
            "temperature": at.temperature,
            "top_p": at.top_p,
            "max_tokens": at.max_tokens,
            "seed": request.seed,
        }
        if at.send_stop:
            fields["stop"] = list(request.stop)
        if at.send_schema and request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {**fields, **at.extra_body}

    def _completions(self, response: Any, frames: tuple[SentImage, ...], n: int) -> tuple[Completion, ...]:
        """The answer's choices, ``n`` at most. Raises ``PolicyError`` where it is no completion."""
        answer = read_answer(response, n)
        warn_of_oddities(answer, model=self.endpoint.model, endpoint=self.endpoint.base_url)
        usages = self._usages(answer, len(answer.texts))
        return tuple(
            Completion(text, is_finished, usage, frames)
            for text, is_finished, usage in zip(answer.texts, answer.finished, usages, strict=True)
        )

    def _usages(self, answer: EndpointAnswer, n: int) -> list[Usage]:
        """A request's usage, split among its ``n`` answers: the first has the prompt and the remainder."""
        n_tokens = answer.completion_tokens or 0
        total = self._usage(answer.prompt_tokens or 0, n_tokens)
        rest = [self._usage(0, n_tokens // n, n_calls=0)] * (n - 1)
        return [total - sum(rest, Usage()), *rest]

    def _usage(self, prompt: int, completion: int, n_calls: int = 1) -> Usage:
        at = self.endpoint
        cost = prompt * at.usd_per_million_prompt_tokens + completion * at.usd_per_million_completion_tokens
        return Usage(calls=n_calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost / 1e6)
