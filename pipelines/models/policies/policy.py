"""The policy protocol: a model that continues a conversation, one answer or several at a time. Answer ``i`` to a
request has the seed ``request.seed + i``, whether it is requested together with others or alone."""

import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from darkroom.pipelines.models.messages import Message
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Round, Usage
from darkroom.pipelines.storage.ledger import all_finished
from darkroom.sandbox.errors import UserError


class PolicyUnavailable(UserError):
    """The policy cannot work at all, or no longer: no key, no or a broken endpoint, a spent budget. Says what to do."""


class PolicyError(Exception):
    """One completion failed, after all retries."""


class NoAnswer(Exception):
    """No whole answer came: nothing listens, the connection was lost, the answer was cut off or no HTTP."""


class StatusError(Exception):
    """An HTTP error as an answer, or the same inside an HTTP 200. ``error``: what the endpoint says of it."""

    usage = Usage()
    """What the endpoint charged all the same."""

    def __init__(self, status: int, error: Any, *, headers: Mapping[str, str] | None = None, where: str = "") -> None:
        fields = error if isinstance(error, dict) else {}
        where, message = where or f"HTTP {status}", fields.get("message") or error
        super().__init__(f"{where}: {message}" if message else where)
        self.status, self.headers = status, headers or {}
        self.is_used_up = status == 429 and "insufficient_quota" in (fields.get("code"), fields.get("type"))


@dataclass(frozen=True, slots=True)
class PolicyIdentity:
    """Model and sampling: part of every ledger key and of every trajectory's provenance."""

    policy: str
    model: str
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Make the JSON form for digests."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A conversation to continue. Only the oracle reads ``task`` and ``rounds``. ``schema`` is the JSON schema of the
    answer, where it must be JSON (a vote, a decision); endpoints with structured output enforce it."""

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    seed: int
    task: Task
    rounds: tuple[Round, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image as it was sent: the policy's coordinates are pixels of ``width`` x ``height``, whatever is stored."""

    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A policy's answer. ``finished`` is False when the token limit cut it off."""

    text: str
    finished: bool = True
    usage: Usage = Usage()
    frames: tuple[SentImage, ...] = ()
    """The images of the conversation, in order, as they were sent; none where a policy reads no images."""
    withheld: str = ""
    """What kept the answer back: a refusal or a filter; empty for an answer."""
    reasoning: str = ""
    """What the model thought before ``text``, where the endpoint tells them apart."""


class Policy(typing.Protocol):
    """A model, an endpoint or the oracle."""

    @property
    def identity(self) -> PolicyIdentity:
        """Everything that determines the completions, besides the conversation and the seed."""

    @property
    def concurrency(self) -> int:
        """Number of rows to work on at once so that the policy is never idle."""

    async def check(self) -> None:
        """Raises ``PolicyUnavailable`` when no completion is possible, before any work is done."""

    async def write(self, request: CompletionRequest) -> Completion:
        """Continues the conversation. Raises ``PolicyError`` or ``PolicyUnavailable``."""

    async def close(self) -> None:
        """Closes connections."""


@typing.runtime_checkable
class Sampler(typing.Protocol):
    """A policy that returns several answers at once: the prompt is sent, read and paid for once."""

    @property
    def gives_several(self) -> bool:
        """True while it is not known to fail: for some endpoints only the first request shows that they do not."""

    async def sample(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        """Up to ``n`` answers and at least one, with seeds from ``request.seed`` on. Raises ``PolicyError``."""


async def samples(policy: Policy, request: CompletionRequest, n: int, *, first: int = 0) -> tuple[Completion, ...]:
    """Answers ``first`` to ``first + n`` of ``policy``. Raises what the policy raises."""
    completions: tuple[Completion, ...] = ()
    while (n_left := n - len(completions)) > 1 and isinstance(policy, Sampler) and policy.gives_several:
        completions += await policy.sample(reseeded(request, first + len(completions)), n_left)
    return completions + await one_by_one(policy, reseeded(request, first + len(completions)), n_left)


async def one_by_one(policy: Policy, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
    """Send ``n`` requests at once. Waits for all even if one raises: answers that were paid for are kept."""
    return tuple(await all_finished(*(policy.write(reseeded(request, number)) for number in range(n))))


def reseeded(request: CompletionRequest, number: int) -> CompletionRequest:
    return replace(request, seed=request.seed + number) if number else request
