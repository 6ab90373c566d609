"""Several answers to the same turn: in one request where a policy can, else in one each.

Answer ``i`` has the seed ``turn.seed + i``, whichever way it is had.
"""

from __future__ import annotations

import asyncio
import typing
from dataclasses import replace

from pipelines.policies.base import Completion, Policy, Turn


@typing.runtime_checkable
class Sampler(typing.Protocol):
    """A policy that can give several answers at once: the prompt is sent, read and paid for once."""

    @property
    def gives_several(self) -> bool:
        """Whether it does; some endpoints turn out not to."""
        ...

    async def sample(self, turn: Turn, n: int) -> tuple[Completion, ...]:
        """Up to ``n`` answers and at least one, with seeds from ``turn.seed`` on. Raises ``PolicyFault``."""
        ...


async def samples(policy: Policy, turn: Turn, n: int, *, first: int = 0) -> tuple[Completion, ...]:
    """Answers ``first`` to ``first + n`` of ``policy`` to ``turn``. Raises what the policy raises."""
    said: tuple[Completion, ...] = ()
    while (n_left := n - len(said)) > 1 and isinstance(policy, Sampler) and policy.gives_several:
        said += await policy.sample(reseeded(turn, first + len(said)), n_left)
    return said + await one_by_one(policy, reseeded(turn, first + len(said)), n - len(said))


async def one_by_one(policy: Policy, turn: Turn, n: int) -> tuple[Completion, ...]:
    """``n`` requests at once. All are waited for, whatever one of them raises: an answer that is paid for is kept."""
    asked = (policy.write(reseeded(turn, number)) for number in range(n))
    said = await asyncio.gather(*asked, return_exceptions=True)
    for one in said:
        if isinstance(one, BaseException):
            raise one
    return tuple(one for one in said if isinstance(one, Completion))


def reseeded(turn: Turn, number: int) -> Turn:
    """The turn with the seed of its ``number``-th answer."""
    return replace(turn, seed=turn.seed + number) if number else turn
