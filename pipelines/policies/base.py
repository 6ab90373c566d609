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
    """The policy cannot work at all (no key, no endpoint). Said before any work; names the variable to set."""


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

    ``schema`` is the JSON schema of an answer that must be one (a judge's vote); endpoints that know it hold to it.
    """

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    seed: int
    task: Task
    rounds: tuple[Round, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a policy wrote. ``finished`` is False when the token limit cut it off."""

    text: str
    finished: bool = True
    usage: Usage = Usage()


class Policy(typing.Protocol):
    """Writes turns."""

    @property
    def identity(self) -> Identity:
        """All that determines what it writes, besides the conversation and the seed."""
        ...

    @property
    def concurrency(self) -> int:
        """How many turns it writes at once."""
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
