"""What a policy is: it is shown a conversation and writes the next turn."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.messages import Message
from pipelines.records import Round, Usage
from pipelines.tasks import Task


class PolicyUnavailable(Exception):
    """The policy cannot work, or no longer: no key, no endpoint, a broken one, a spent budget. Says what to do."""


class PolicyFault(Exception):
    """One turn could not be had, after all retries."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who writes: part of every ledger key and of every trajectory's provenance."""

    policy: str
    model: str
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For digests."""
        return {
            "policy": self.policy,
            "model": self.model,
            "revision": self.revision,
            "sampling": dict(self.sampling),
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked of a policy: the conversation so far. Only the oracle looks at ``task`` and ``rounds``.

    ``schema`` is the JSON schema of an answer that must be one (a judge's vote, a decision); endpoints that know it
    hold to it.
    """

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    seed: int
    task: Task
    rounds: tuple[Round, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture as the policy saw it: its coordinates are pixels of ``width`` x ``height``, whatever is stored."""

    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What a policy wrote. ``finished`` is False when the token limit cut it off."""

    text: str
    finished: bool = True
    usage: Usage = Usage()
    frames: tuple[Frame, ...] = ()
    """The pictures of the conversation, in order, as they were sent; none where a policy looks at no picture."""


class Policy(typing.Protocol):
    """Writes turns."""

    @property
    def identity(self) -> Identity:
        """All that determines what it writes, besides the conversation and the seed."""
        ...

    @property
    def concurrency(self) -> int:
        """How many rows are to be worked on at once, so that it always has a turn to write."""
        ...

    async def check(self) -> None:
        """Raises ``PolicyUnavailable`` when no turn could be had, before any work is done."""
        ...

    async def write(self, turn: Turn) -> Completion:
        """Writes the next turn. Raises ``PolicyFault`` when it cannot be had."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...
