"""The one loop through which everything goes that touches a model: policy, protocol, session, task -> rollout."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.digest import seed_from
from pipelines.messages import Message, message
from pipelines.policies.base import Completion, Policy, PolicyFault, Turn
from pipelines.protocols.base import Malformed, ParsedTurn, Protocol
from pipelines.records import Observation, Round, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Task

FollowUp = Callable[[Task, tuple[Round, ...]], str]


class Session(typing.Protocol):
    """Executes programs; state lives across them."""

    async def run(self, code: str) -> Observation:
        """What the program printed and showed."""
        ...


@dataclass(frozen=True, slots=True)
class Rollout:
    """How far a policy came. ``fault`` says why it has no answer; its rounds are kept all the same."""

    rounds: tuple[Round, ...]
    final_thought: str
    answer: str
    usage: Usage
    fault: RowFault | None = None


async def rollout(
    task: Task,
    *,
    policy: Policy,
    protocol: Protocol,
    session: Session,
    max_rounds: int,
    opening: Completion | None = None,
    follow_up: FollowUp | None = None,
) -> Rollout:
    """Lets ``policy`` write and the session execute until there is an answer.

    ``opening`` is the first turn where it was written before (the draft). ``follow_up`` is what the policy is told
    beside each observation; no record keeps it. A turn that cannot be had, parsed or
    executed ends the rollout with its ``fault``; nothing is raised for one row's failure.
    """
    rounds: list[Round] = []
    messages = task.opening
    usage = Usage()
    try:
        while True:
            turn = Turn(messages, protocol.stop, seed_from(task.seed, len(rounds)), task, tuple(rounds))
            completion = opening if opening and not rounds else await write_turn(policy, turn)
            usage += completion.usage
            parsed = parse_turn(completion, protocol)
            if parsed.code is None:
                return Rollout(tuple(rounds), parsed.thought, parsed.answer or "", usage)
            if len(rounds) == max_rounds:
                raise RowFault(Reason.TOO_MANY_ROUNDS, f"still writing code after {max_rounds} rounds")
            if not rounds:
                await set_up(session, protocol)
            seen = Round(parsed.thought, parsed.code, await session.run(parsed.code))
            first = not rounds
            rounds.append(seen)
            told = follow_up(task, tuple(rounds)) if follow_up else ""
            messages = (*messages, *_exchange(seen, protocol, first=first, told=told))
    except RowFault as fault:
        return Rollout(tuple(rounds), "", "", usage, fault)


def parse_turn(completion: Completion, protocol: Protocol) -> ParsedTurn:
    """A completion taken apart. Raises ``RowFault``: truncated_turn or malformed_turn, with an excerpt."""
    stream = protocol.stream()
    stream.feed(completion.text)
    parsed = stream.finish()
    if isinstance(parsed, ParsedTurn) and (completion.finished or not stream.in_code):
        return parsed
    what = parsed.evidence if isinstance(parsed, Malformed) else "its code has no end"
    if completion.finished:
        raise RowFault(Reason.MALFORMED_TURN, what)
    raise RowFault(Reason.TRUNCATED_TURN, f"the token limit cut the turn off; {what}")


async def set_up(session: Session, protocol: Protocol) -> None:
    """Runs what the protocol's programs need, once and off the record. Raises ``RowFault`` (sandbox_failed)."""
    if not protocol.setup:
        return
    seen = await session.run(protocol.setup)
    if seen.status != "ok":
        raise RowFault(Reason.SANDBOX_FAILED, f"{protocol.name}'s setup: {seen.status}: {seen.error or seen.text}")


async def write_turn(policy: Policy, turn: Turn) -> Completion:
    """The next turn. Raises ``RowFault`` (policy_failed) when it cannot be had."""
    try:
        return await policy.write(turn)
    except PolicyFault as fault:
        raise RowFault(Reason.POLICY_FAILED, str(fault)) from fault


def _exchange(seen: Round, protocol: Protocol, *, first: bool, told: str) -> tuple[Message, Message]:
    """What a round adds to the conversation: rendered from the record, so that any reader can render it again."""
    said = protocol.write_round(seen.thought, seen.code, first=first)
    return message("assistant", said), message("user", *protocol.wrap(seen.observation), *([told] if told else []))
