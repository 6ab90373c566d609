"""The one loop through which everything goes that touches a model: policy, protocol, session, task -> rollout."""

import typing
from collections.abc import Callable
from dataclasses import dataclass, replace

from darkroom.pipelines.models.messages import message
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, PolicyError
from darkroom.pipelines.models.protocols.markup import Malformed, ParsedTurn, lines, tag
from darkroom.pipelines.models.protocols.protocol import Protocol, render
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Observation, Round, Usage
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.sandbox.errors import raised_as

FollowUp = Callable[[Task, tuple[Round, ...]], str]


class Writer(typing.Protocol):
    """Writes turns, as every policy does."""

    async def write(self, request: CompletionRequest, /) -> Completion:
        """The next turn. Raises ``PolicyError``."""


class CodeSession(typing.Protocol):
    """Executes programs; state lives across them."""

    async def run(self, code: str) -> Observation:
        """Run code; the observation is what it printed and showed."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Result of a policy. ``error`` says why it has no answer; its rounds are kept all the same."""

    rounds: tuple[Round, ...]
    final_thought: str
    answer: str
    usage: Usage
    error: RowError | None = None


async def rollout(
    task: Task,
    *,
    policy: Writer,
    protocol: Protocol,
    session: CodeSession,
    max_rounds: int,
    opening: Completion | None = None,
    follow_up: FollowUp | None = None,
) -> Rollout:
    """Lets ``policy`` write and the session execute until there is an answer. ``opening`` is a first turn that was
    written before (the draft); ``follow_up`` is sent beside each observation and is in no record. A turn that cannot be
    had, parsed or executed ends the rollout with its ``error``; nothing is raised for it."""
    rounds: list[Round] = []
    messages = task.opening
    usage = Usage()
    try:
        while True:
            turn = CompletionRequest(messages, protocol.stop, seed_from(task.seed, len(rounds)), task, tuple(rounds))
            completion = opening if opening and not rounds else await write_turn(policy, turn)
            usage += completion.usage
            if (parsed := parse_turn(completion, protocol)).code is None:
                return Rollout(tuple(rounds), parsed.thought, parsed.answer or "", usage)
            if len(rounds) == max_rounds:
                raise RowError(Reason.TOO_MANY_ROUNDS, f"still writing code after {max_rounds} rounds")
            first = not rounds
            if first and protocol.setup:
                await _set_up(session, protocol)
            observation = await session.run(parsed.code)
            observation = replace(observation, edits=(*parsed.mended, *observation.edits))
            rounds.append(Round(parsed.thought, parsed.code, observation))
            # rendered from the record, so that any reader can render them again
            turn_text = protocol.write_round(parsed.thought, parsed.code, first=first)
            beside = [text] if follow_up and (text := follow_up(task, tuple(rounds))) else []
            observed = message("user", *protocol.wrap(observation), *beside)
            messages = (*messages, message("assistant", turn_text), observed)
    except RowError as error:
        return Rollout(tuple(rounds), "", "", usage, error)


def parse_turn(completion: Completion, protocol: Protocol) -> ParsedTurn:
    """A completion taken apart, its reasoning as the thought, without the protocol's tags. Code counts there if nothing
    but an answer follows, which was made up. Raises ``RowError`` (withheld_turn, truncated_turn, malformed_turn)."""
    if completion.withheld:
        raise RowError(Reason.WITHHELD_TURN, f"{completion.withheld}; {completion.text[:100]!r}")
    if not completion.reasoning:
        return _parse_text(completion.text, completion, protocol)
    thought = lines(completion.reasoning).strip()
    acted, said = protocol.parse(thought), protocol.parse(completion.text)
    code = acted.code if isinstance(acted, ParsedTurn) else None
    has_code = code is not None and tag(f"/{protocol.container}").search(thought)
    if not completion.text.strip() or (has_code and isinstance(said, ParsedTurn) and said.code is None):
        return _parse_text(thought, completion, protocol)
    turn = _parse_text(completion.text, completion, protocol)
    names = (f"/?{name}" for name in (*protocol.tags, protocol.marker))
    thought = tag(*names).sub(lambda found: found[0].strip("</>"), thought)
    turn = replace(turn, thought=f"{thought}\n\n{turn.thought}".strip())
    render(protocol, turn, first=True)
    return turn


def _parse_text(text: str, completion: Completion, protocol: Protocol) -> ParsedTurn:
    stream = protocol.stream()
    stream.feed(text)
    parsed = stream.finish()
    if isinstance(parsed, ParsedTurn) and (completion.finished or not stream.in_code):
        return parsed
    what = parsed.evidence if isinstance(parsed, Malformed) else "its code has no end"
    if (n_tokens := completion.usage.completion_tokens) and not completion.text.strip():
        where = "reasoning" if text else "reasoning, or a field that is not read"
        what += f"; none of its {n_tokens} tokens is text: they went into {where}"
    if completion.finished:
        raise RowError(Reason.MALFORMED_TURN, what)
    raise RowError(Reason.TRUNCATED_TURN, f"the token limit cut the turn off; {what}")


async def _set_up(session: CodeSession, protocol: Protocol) -> None:
    """Runs what the protocol's programs need, once and off the record. Raises ``RowError`` (sandbox_failed)."""
    if (observation := await session.run(protocol.setup)).status != "ok":
        evidence = f"{protocol.name}'s setup: {observation.status}: {observation.error or observation.text}"
        raise RowError(Reason.SANDBOX_FAILED, evidence)


async def write_turn(policy: Writer, turn: CompletionRequest) -> Completion:
    """The next turn. Raises ``RowError`` (policy_failed) when it cannot be had."""
    with raised_as(lambda error: RowError(Reason.POLICY_FAILED, str(error)), PolicyError):
        return await policy.write(turn)
