"""Any OpenAI-compatible endpoint: ``vllm serve``, ``transformers serve``, a commercial API.

Images travel as data URLs with the stored bytes. Retries (429, 5xx, lost connections) are the SDK's; a request that
is wrong in itself (400) is not tried again. Prices are per million tokens, given by the user: none are built in.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import openai

from pipelines.images import ImageStore
from pipelines.messages import Message, Part, Text
from pipelines.policies.base import Completion, Identity, PolicyFault, PolicyUnavailable, Turn
from pipelines.records import Usage
from pipelines.rejects import storable

MEDIA_TYPES = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""By format, for what intake stores (``pipelines/decoding.py``); an MPO is a JPEG with further pictures after it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers, and how it is asked.

    ``key_variable`` names the environment variable that holds the key, never the key itself: settings are stored in
    run configurations, keys must not be.
    """

    base_url: str
    model: str
    key_variable: str = "OPENAI_API_KEY"
    revision: str = ""
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 2048
    send_stop: bool = True
    """Whether to send the protocol's stop strings; a server that refuses them costs tokens, not correctness."""
    concurrency: int = 32
    timeout_seconds: float = 300.0
    max_retries: int = 5
    usd_per_million_prompt_tokens: float = 0.0
    usd_per_million_completion_tokens: float = 0.0

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine: such servers take any key."""
        return urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1")


class OpenAIPolicy:
    """A policy behind HTTP.

    >>> endpoint = Endpoint("http://127.0.0.1:8000/v1", "Qwen/Qwen2.5-VL-72B-Instruct")
    >>> policy = OpenAIPolicy(endpoint, store)
    """

    def __init__(self, endpoint: Endpoint, store: ImageStore) -> None:
        self.endpoint = endpoint
        self._store = store
        key = os.environ.get(endpoint.key_variable, "").strip()
        self._key = key
        self._missing_key = not key and not endpoint.is_local
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=key or "none",
            timeout=endpoint.timeout_seconds,
            max_retries=endpoint.max_retries,
        )

    @property
    def identity(self) -> Identity:
        """Model, revision and every sampling parameter."""
        at = self.endpoint
        sampling = {"temperature": at.temperature, "top_p": at.top_p, "max_tokens": at.max_tokens}
        return Identity("openai", at.model, at.revision, sampling)

    @property
    def concurrency(self) -> int:
        """Requests in flight."""
        return self.endpoint.concurrency

    async def check(self) -> None:
        """Asks for the list of models: any answer but a refusal of the key means that the endpoint is there."""
        at = self.endpoint
        if self._missing_key:
            raise PolicyUnavailable(f"no key for {at.base_url}: set the environment variable {at.key_variable}")
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
        """One chat completion."""
        at = self.endpoint
        try:
            response = await self._client.chat.completions.create(
                model=at.model,
                messages=[self._message(said) for said in turn.messages],  # type: ignore[misc]  # built as JSON
                temperature=at.temperature,
                top_p=at.top_p,
                max_tokens=at.max_tokens,
                seed=turn.seed,
                stop=list(turn.stop) if at.send_stop else openai.omit,
            )
        except (openai.OpenAIError, ValueError) as fault:  # ValueError: a body that is not the JSON that it says it is
            raise PolicyFault(self._hidden(f"{at.model} at {at.base_url}: {type(fault).__name__}: {fault}")) from None
        choices = getattr(response, "choices", None)  # a body of another type comes as text
        if not choices:
            raise PolicyFault(self._hidden(f"{at.model} at {at.base_url}: a response without choices"))
        text = storable(choices[0].message.content or "")
        return Completion(text, choices[0].finish_reason != "length", self._usage(response))

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def _hidden(self, text: str) -> str:
        """``text`` without the key: a server may repeat it in what it says, and rejects are kept in tables."""
        return text.replace(self._key, "<key>") if self._key else text

    def _message(self, said: Message) -> dict[str, Any]:
        if said.role != "user":
            text = "".join(part.text for part in said.parts if isinstance(part, Text))
            return {"role": said.role, "content": text}
        return {"role": said.role, "content": [self._part(part) for part in said.parts]}

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        media_type = MEDIA_TYPES.get(part.image.format, f"image/{part.image.format.lower()}")
        data = base64.b64encode(self._store.read(part.image)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}

    def _usage(self, response: Any) -> Usage:
        used = getattr(response, "usage", None)
        prompt, completion = (getattr(used, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens"))
        at = self.endpoint
        cost = prompt * at.usd_per_million_prompt_tokens + completion * at.usd_per_million_completion_tokens
        return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost / 1e6)
