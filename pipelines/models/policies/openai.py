"""Any OpenAI-compatible endpoint: ``vllm serve``, ``transformers serve``, a commercial API.

Messages keep their order (system, images, text, turns), so that an endpoint with a prefix cache reads each image once.

An answer that was paid for is read, however odd: an error would be paid for again.

>>> read_answer({"choices": [{"message": {"content": [{"type": "text", "text": "a cat"}]}}]}, 1).choices[0].text
'a cat'
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from darkroom.pipelines.models.messages import ImagePart
from darkroom.pipelines.models.policies.budget import BudgetPool, SpendTracker
from darkroom.pipelines.models.policies.calls import REJECTED_KEY, EndpointCalls
from darkroom.pipelines.models.policies.images import ImageEncoder
from darkroom.pipelines.models.policies.limiter import SharedCalls
from darkroom.pipelines.models.policies.policy import (
    Completion,
    CompletionRequest,
    NoAnswer,
    PolicyError,
    PolicyUnavailable,
    SentImage,
    StatusError,
)
from darkroom.pipelines.models.policies.settings import Endpoint, EndpointSettings
from darkroom.pipelines.records import Usage
from darkroom.pipelines.records.geometry import PixelLimits
from darkroom.pipelines.records.reject_reasons import storable
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger

if TYPE_CHECKING:  # the SDK takes a second, which commands that call no endpoint are spared
    from darkroom.pipelines.models.policies.http_client import Body

_DEEPEST = 4
"""Lists and objects in one another that a message's content may have."""
_MOST_TOKENS = 10**9
"""Of one answer; a larger number is no count, and no table's column takes it."""
_HICCUPS = ("error", "abort", "network_error", "insufficient_system_resource")
"""What OpenRouter and LiteLLM, SGLang, Z.ai and DeepSeek end an answer with that their own side broke off."""
_FILTERS = ("content_filter", "refusal", "safety", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "sensitive")
"""What OpenAI, Anthropic, Google and Z.ai end an answer with that they hold back."""
_LIMITS = ("length", "model_length", "max_tokens", "MAX_TOKENS", "model_context_window_exceeded")
"""What OpenAI, Mistral, Anthropic and Google end an answer with that the token limit cut off."""
_THOUGHTS = ("reasoning", "reasoning_content", "thinking", "reasoning_details", "thinking_blocks")
"""Fields of a message: vLLM's, SGLang's and DeepSeek's, Ollama's, blocks of OpenRouter's and LiteLLM's."""
_THOUGHT_PARTS = ("thinking", "reasoning", "reasoning_content")
"""Types of a content's parts, as Anthropic's and Mistral's pass through gateways."""
_TEXTS = ("text", "value", "thinking", "summary", "reasoning")
"""Names of a part's text."""
_THINK = re.compile(r"\A\s*(?:<(?:seed:)?think>|<thought>|◁think▷|\[THINK]|<\|channel\|>analysis<\|message\|>)", re.I)
_THINK_END = re.compile(r"</(?:seed:)?think>|</thought>|◁/think▷|\[/THINK]|<\|end\|>.{0,40}?final<\|message\|>", re.I)
"""Marks of Qwen, DeepSeek, Seed-OSS, Gemma, Kimi, Magistral and gpt-oss, where no parser took them out."""
_VERSION = re.compile(r"(?:[-@:](?:latest|main|preview|exp|v?[0-9][0-9.]*))+")
"""What providers add to the name of a model: a date, a revision (``gpt-4o-2024-08-06``, ``claude@20240620``)."""


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """The choices, which know no usage; tokens are None where no count can be read. ``failure``: why there is none."""

    choices: tuple[Completion, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str
    failure: StatusError | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    """The first choice's, as it came."""


def read_answer(body: Any, n: int) -> EndpointAnswer:
    """The first ``n`` choices of a response that did not fail. Raises ``PolicyError``, with no tokens, without one."""
    fields = body if isinstance(body, dict) else {}
    listed = fields.get("choices")
    choices = [choice if isinstance(choice, dict) else {} for choice in listed[:n]] if isinstance(listed, list) else []
    counts = used if isinstance(used := fields.get("usage"), dict) else {}
    prompt, completion = (_count(counts.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    model = fields["model"] if isinstance(fields.get("model"), str) else ""
    errors = [_error(fields, None), *(_error(choice, choice.get("finish_reason")) for choice in choices)]
    if errors[0] or (choices and all(errors[1:])):
        return EndpointAnswer((), prompt, completion, model, errors[0] or errors[1])
    choices = [choice for choice, error in zip(choices, errors[1:], strict=True) if not error]
    if not any(isinstance(choice.get("message"), dict) for choice in choices) and not completion:
        problem = "an answer without a choice" if listed == [] else "an answer that is no completion"
        raise PolicyError(f"{problem}: {body}")
    choices = choices or [{}]  # paid for, and withheld
    if not completion and not any(map(_says_something, choices)):
        failure = StatusError(502, None, where="HTTP 200 with an empty answer, and no tokens counted")
        return EndpointAnswer((), prompt, completion, model, failure)
    return EndpointAnswer(tuple(map(_completion, choices)), prompt, completion, model, message=_message(choices[0]))


def _error(fields: Mapping[str, Any], finish_reason: Any) -> StatusError | None:
    """The HTTP error that an answer or a choice holds, and gateways send with the status 200."""
    error = held if isinstance(held := fields.get("error"), dict) else {}
    code = _count(error.get("code")) or 0
    status = code if 400 <= code < 600 else 502 if finish_reason in _HICCUPS else 0
    if not status:
        return None
    return StatusError(status, held, where=f"HTTP 200 with the error {status}, finish_reason {finish_reason!r}")


def _says_something(choice: Mapping[str, Any]) -> bool:
    """Return whether it has content or a thought, is a refusal or a call, or says why it has none."""
    message, reason = _message(choice), choice.get("finish_reason")
    fields = ("content", "refusal", "tool_calls", *_THOUGHTS)
    return reason in (*_LIMITS, *_FILTERS) or any(str(message.get(name) or "").strip() for name in fields)


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    message = choice.get("message")
    return message if isinstance(message, dict) else {}


def _completion(choice: Mapping[str, Any]) -> Completion:
    """A choice without usage."""
    message, reason = _message(choice), choice.get("finish_reason")
    reasoning, text = map(storable, _thought_and_text(message))
    text += "" if "<tool_call>" in text else storable(_calls(message))
    refusal = storable(_text(message.get("refusal"), _DEEPEST))
    withheld = f"finish_reason {reason!r}" if reason in _FILTERS else ""
    if refusal and not text.strip():
        withheld = f"the model refused: {refusal[:200]!r}"
    return Completion(text, reason not in _LIMITS, withheld=withheld, reasoning=reasoning)


def _calls(message: Mapping[str, Any]) -> str:
    """The calls that a server moved out of the text, as models write them there (``protocols/tool_call.py``)."""
    listed = message.get("tool_calls")
    functions = [call.get("function") for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    texts: list[str] = []
    for function in functions:
        named = function if isinstance(function, dict) else {}
        written = given if isinstance(given := named.get("arguments"), str) else json.dumps(given)
        call = f'{{"name": {json.dumps(named.get("name"))}, "arguments": {written}}}'.replace("<", "\\u003c")
        texts.append(f"\n<tool_call>\n{call}\n</tool_call>")
    return "".join(texts)


def _thought_and_text(message: Mapping[str, Any]) -> tuple[str, str]:
    """The thought, of a field, of parts or before ``</think>`` or its like, and the text after it. Text that opens a
    thought and never ends it is said: code may be in it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    thoughts = [part for part in parts if isinstance(part, dict) and part.get("type") in _THOUGHT_PARTS]
    text = _text([part for part in parts if part not in thoughts] if thoughts else content, _DEEPEST)
    fields = (_text(message.get(name), _DEEPEST) for name in _THOUGHTS)
    thought = next(filter(str.strip, fields), "") or _text(thoughts, _DEEPEST)
    text = _THINK.sub("", text, count=1)
    if end := _THINK_END.search(text):
        return f"{thought}\n{text[: end.start()]}".strip(), text[end.end() :]
    return thought, text


def warn_of_oddities(answer: EndpointAnswer, *, model: str, endpoint: str) -> None:
    """Says once what a user should look into: another model answers, or tokens are not counted."""
    if answer.model and not is_same_model(model, answer.model):
        _warn(f"{endpoint} answers as {answer.model[:200]!r} to requests for {model!r}: check DARKROOM_POLICY_MODEL")
    if answer.completion_tokens is None:
        _warn(f"{endpoint} does not say how many tokens {model} used: its calls count, with no tokens and no cost")


def is_same_model(requested: str, answering: str) -> bool:
    """Return whether two names mean one model: an owner before it and a date or revision after it are as the provider
    likes.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    first, second = _bare(requested), _bare(answering)
    shorter, longer = sorted((first, second), key=len)
    more = longer.removeprefix(shorter)[:200]
    return longer.startswith(shorter) and (not more or _VERSION.fullmatch(more) is not None)


def _bare(name: str) -> str:
    return name.rstrip("/").lower().rsplit("/", 1)[-1].removesuffix("-latest").removesuffix(":latest")


@cache
def _warn(text: str) -> None:
    logging.getLogger(__name__).warning("warning: %s", text)


def _text(content: Any, depth: int) -> str:
    """A text, none, or parts, of which those with a text count."""
    if isinstance(content, str):
        return content
    if content is None or depth == 0:
        return ""
    if isinstance(content, list):
        return "".join(_text(part, depth - 1) for part in content)
    if isinstance(content, dict):
        return _text(next((content[name] for name in _TEXTS if content.get(name)), None), depth - 1)
    return str(content)


def _count(value: Any) -> int | None:
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if 0 <= count <= _MOST_TOKENS else None


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
        # the SDK takes a second, which commands that call no endpoint are spared
        from darkroom.pipelines.models.policies.http_client import ChatClient

        self.endpoint = endpoint
        self.identity = endpoint.identity
        """Model, revision and every setting that determines the completions."""
        self.budget_pool = budget_pool or BudgetPool()
        self._images = ImageEncoder(store, PixelLimits(endpoint.min_pixels, endpoint.max_pixels, endpoint.size_step))
        key = endpoint.key()
        self._missing_key = not key and not endpoint.is_local
        self.gives_several, self._has_given_several = endpoint.send_n, False
        """Whether the endpoint supports ``n``: as set, until a request shows that it does not."""
        self._shared = shared
        # a server may repeat the key in an error, and rejects are stored in tables
        clean = (lambda text: text.replace(key, "<key>")) if key else str
        self._calls = EndpointCalls(endpoint, self.budget_pool, clean, shared)
        self.clean, self.chat = clean, ChatClient(endpoint, key)

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
        at = self.endpoint
        if self._missing_key:
            raise PolicyUnavailable(f"no key for {at.base_url}: set the environment variable {at.key_variable}")
        if self.budget_pool.limit.usd is not None and not at.has_prices:
            model = at.model
            raise PolicyUnavailable(f"a budget in USD needs the prices of {model}, and none is set: it would never end")
        if at.batch == "folder":  # no server is needed until a conversation has a second turn
            return
        try:
            listed = [entry["id"] for entry in await self.chat.request_models()]
            if listed and not any(is_same_model(at.model, name) for name in listed):
                _warn(f"{at.base_url} lists no model {at.model!r}, but {', '.join(map(repr, listed[:20]))[:200]}")
        except NoAnswer as error:
            mend = f"Start the server there, or {self.another}"
            raise PolicyUnavailable(f"nothing answers at {at.base_url} ({error}). {mend}") from error
        except StatusError as error:  # it answers; not every server lists its models (`transformers serve` does not)
            if error.status in REJECTED_KEY:
                wrong = f"{at.base_url} refused the key in {at.key_variable} ({error.status}); set a valid one"
                raise PolicyUnavailable(wrong) from None

    async def write(self, request: CompletionRequest) -> Completion:
        """One chat completion. Raises ``PolicyError``, or ``PolicyUnavailable`` when no further one is possible."""
        return (await self._complete(request, 1))[0]

    async def sample(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        """Request up to ``n`` chat completions at once. Raises as ``write`` does. An endpoint that rejects ``n``, or
        returns one answer to it, gets no such request again."""
        try:
            completions = await self._complete(request, n)
        except PolicyError:
            if self._has_given_several:
                raise
            self.gives_several = False  # the error may have another cause: then `write` meets it too
            return (await self.write(request),)
        self.gives_several = self._has_given_several = self._has_given_several or len(completions) > 1
        return completions

    async def _complete(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        body, frames = await self.prepare(request, n)

        async def send() -> tuple[Completion, ...]:
            return self.completions(await self.chat.post(body), frames, n)

        return await self._calls.make(send, seed=request.seed)

    async def prepare(self, request: CompletionRequest, n: int) -> tuple[Body, tuple[SentImage, ...]]:
        """Make a request's body, and the sizes of its images as sent. Raises ``PolicyError`` for what is no UTF-8."""
        from darkroom.pipelines.models.policies.http_client import Body

        parts = (part for message in request.messages for part in message.parts)
        images = [part.image for part in parts if isinstance(part, ImagePart)]
        frames = tuple(SentImage(image.sha256, *self._images.size(image)) for image in images)
        urls = {image.sha256: await self._images.url(image) for image in images}
        fields = self._fields(request) if n == 1 else {**self._fields(request), "n": n}
        try:
            return Body(fields, request.messages, urls), frames
        except ValueError as error:
            raise PolicyError(f"{type(error).__name__}: {error}") from None

    async def close(self) -> None:
        """Records what was spent, gives leased calls back and closes the connections."""
        if self._shared is not None:
            await self._shared.close()
        await asyncio.to_thread(self.budget_pool.settle)
        self._images.close()
        await self.chat.close()

    def _fields(self, request: CompletionRequest) -> dict[str, Any]:
        """All of the request's body but the messages."""
        at = self.endpoint
        fields: dict[str, Any] = {**at.sampling, "seed": request.seed}
        if at.send_stop:
            fields["stop"] = list(request.stop)
        if at.send_schema and request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        fields |= at.extra_body
        return {name: value for name, value in fields.items() if value is not None}

    def completions(
        self, body: Any, frames: tuple[SentImage, ...], n: int, price: float = 1.0
    ) -> tuple[Completion, ...]:
        """The answer's choices, ``n`` at most; ``price``: of a token in its usual price. Raises ``PolicyError`` where
        it is no completion, ``StatusError`` where the endpoint failed."""
        if (answer := read_answer(body, n)).failure is not None:
            if answer.prompt_tokens or answer.completion_tokens:
                answer.failure.usage = self._usage(answer.prompt_tokens or 0, answer.completion_tokens or 0, price)
            raise answer.failure
        warn_of_oddities(answer, model=self.endpoint.model, endpoint=self.endpoint.base_url)
        n_texts, n_tokens = len(answer.choices), answer.completion_tokens or 0
        # the first has the prompt and the remainder
        rest = [self._usage(0, n_tokens // n_texts, price, n_calls=0)] * (n_texts - 1)
        usages = [self._usage(answer.prompt_tokens or 0, n_tokens, price) - sum(rest, Usage()), *rest]
        paid = zip(answer.choices, usages, strict=True)
        return tuple(replace(choice, usage=usage, frames=frames) for choice, usage in paid)

    def _usage(self, prompt: int, completion: int, price: float, n_calls: int = 1) -> Usage:
        at = self.endpoint
        cost = prompt * at.usd_per_million_prompt_tokens + completion * at.usd_per_million_completion_tokens
        return Usage(calls=n_calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost * price / 1e6)
