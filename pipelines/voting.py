"""The one voting primitive: several independent answers of a policy to one question, each on the ledger, counted.

    votes = await poll(policy, turn, read, n_votes=8)                   # all eight, in one request where that is served
    votes = await poll(policy, turn, read, n_votes=8, verdict=majority) # no more than make the majority certain

Judges, screens, labels, pass rates, necessity and suitability all ask through it. Ballot ``i`` has the seed
``turn.seed + i``: exactly what vLLM gives the ``i``-th of ``n`` samples of one request, so that ballots are the same
however they are asked for, and one that was paid for is not asked again.

Of voters that are right with probability p independently, a majority of n errs with the probability that a binomial
variable has to be on the wrong side: eight voters of p = 0.7 err in 5.8 of 100 cases and tie in 13.6.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from pipelines.policies.base import Completion, Policy, PolicyFault, Turn
from pipelines.policies.samples import samples
from pipelines.records import Usage, Votes
from pipelines.rejects import Reason, RowFault

Verdict = Callable[[int, int], Any]
"""What ``(n_yes, n_no)`` of all ballots come to."""
_MAX_REASON = 300


class Ballot(NamedTuple):
    """One answer: yes, no, or None where it is none; and what it said of it."""

    says: bool | None
    reason: str = ""
    usage: Usage = Usage()
    """What it cost to read the answer, where a judge graded it."""


Reader = Callable[[Completion], Ballot | Awaitable[Ballot]]
"""Takes an answer for a ballot; one that grades may take its time."""


async def poll(
    policy: Policy,
    turn: Turn,
    read: Reader,
    *,
    n_votes: int,
    verdict: Verdict | None = None,
    what: str = "vote",
) -> Votes:
    """Asks ``n_votes`` times, in seeds from ``turn.seed`` on; ``read`` takes an answer for a ballot.

    With ``verdict`` it asks in rounds, each of as many as could make the verdict certain, and stops when it is. Raises
    ``RowFault`` (policy_failed) when an answer cannot be had, saying ``what`` it was for.
    """
    ballots: list[Ballot] = []
    usage = Usage()
    while n_next := _n_next([ballot.says for ballot in ballots], n_votes, verdict):
        try:
            said = await samples(policy, turn, n_next, first=len(ballots))
        except PolicyFault as fault:
            raise RowFault(Reason.POLICY_FAILED, f"{what}: {fault}") from fault
        found = await _read(read, said)
        ballots += found
        usage = sum([completion.usage for completion in said] + [ballot.usage for ballot in found], usage)
    return Votes(
        judge=policy.identity.model,
        ballots=tuple(ballot.says for ballot in ballots),
        n_wanted=n_votes,
        reasons=tuple(ballot.reason[:_MAX_REASON] for ballot in ballots),
        usage=usage,
    )


async def _read(read: Reader, said: Sequence[Completion]) -> list[Ballot]:
    found = [read(completion) for completion in said]
    waiting = iter(await asyncio.gather(*(ballot for ballot in found if inspect.isawaitable(ballot))))
    return [next(waiting) if inspect.isawaitable(ballot) else ballot for ballot in found]


def _n_next(says: list[bool | None], n_votes: int, verdict: Verdict | None) -> int:
    """How many to ask for at once: all that are left, or the fewest after which the verdict may be certain."""
    n_left = n_votes - len(says)
    if verdict is None or not n_left:
        return n_left
    n_yes, n_no = says.count(True), says.count(False)
    return next(
        n
        for n in range(n_left + 1)
        if any(is_certain(verdict, n_yes + more, n_no + n - more, n_left - n) for more in range(n + 1))
    )


def is_certain(verdict: Verdict, n_yes: int, n_no: int, n_left: int) -> bool:
    """Whether the verdict is the same however the ballots that are left turn out, invalid ones among them."""
    found = verdict(n_yes, n_no)
    return all(
        verdict(n_yes + more, n_no + less) == found for more in range(n_left + 1) for less in range(n_left + 1 - more)
    )
