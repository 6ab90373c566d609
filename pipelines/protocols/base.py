"""What a protocol is: it finds code and answers in what a policy wrote, and wraps what comes back.

A turn reads the same however it arrives: ``parse`` takes it whole, ``stream`` in pieces. Neither raises: a turn that
is not one is ``Malformed``, with what is wrong. Line ends are ``\\n`` in everything that a protocol reads or writes;
thoughts and answers have no blanks around them.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass

from pipelines.messages import Message, Part
from pipelines.records import ImageRef, Observation, VideoRef
from pipelines.rejects import Reason, RowFault

if typing.TYPE_CHECKING:
    from pipelines.protocols.stream import TurnStream


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """One turn taken apart: a thought, then either code to run or the final answer."""

    thought: str
    code: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """A turn that could not be taken apart: what is wrong with it, with an excerpt."""

    evidence: str


class Protocol(typing.Protocol):
    """One way of thinking with images."""

    name: str
    stop: tuple[str, ...]
    """Strings after which a turn ends. A server may cut them off or ignore them; ``parse`` copes with both."""
    modes: tuple[str, ...]
    """The system prompts that it has (``free``: the policy decides about code); the first is the default."""
    setup: str
    """A program that is run in the session before the policy's first one, off the record; empty for none."""

    def opening(
        self, question: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...] = (), *, mode: str = "free"
    ) -> tuple[Message, ...]:
        """The conversation before the first turn, as a trained model sees it: no hint of any kind.

        Raises ``RowFault`` (not_applicable) for videos where the protocol has none, ``ValueError`` for a mode.
        """
        ...

    def parse(self, text: str) -> ParsedTurn | Malformed:
        """Takes a turn apart. What follows its end counts for nothing, as if a stop string had cut it off."""
        ...

    def stream(self) -> TurnStream:
        """A reader of one turn that arrives in pieces."""
        ...

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """A turn with code, as text: exactly what ``parse`` takes apart again.

        Raises ``RowFault`` (malformed_turn) for words that no turn can hold, such as a thought with ``<code>`` in it.
        """
        ...

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """The last turn, as text; raises as ``write_round`` does. ``first`` says that it is also the only one."""
        ...

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """What the policy is shown of an observation, markers included."""
        ...


def render(protocol: Protocol, parsed: ParsedTurn, *, first: bool) -> str:
    """The turn as text, with code or with the answer. Inverse of ``parse`` on all that is rendered."""
    if parsed.code is not None:
        return protocol.write_round(parsed.thought, parsed.code, first=first)
    return protocol.write_answer(parsed.thought, parsed.answer or "", first=first)


def checked(protocol: Protocol, text: str, turn: ParsedTurn) -> str:
    """``text``, which says ``turn`` and nothing else. Raises ``RowFault`` (malformed_turn) when it does not."""
    parsed = protocol.parse(text)
    if parsed == turn:
        return text
    why = parsed.evidence if isinstance(parsed, Malformed) else f"it would be read otherwise: {excerpt(text)}"
    raise RowFault(Reason.MALFORMED_TURN, f"{protocol.name} cannot hold these words: {why}")


def check_opening(protocol: Protocol, mode: str, videos: tuple[VideoRef, ...] = ()) -> None:
    """Raises ``ValueError`` for a mode that ``protocol`` lacks, ``RowFault`` (not_applicable) for ``videos``."""
    if mode not in protocol.modes:
        raise ValueError(f"{protocol.name} has the modes {', '.join(protocol.modes)}; found {mode!r}")
    if videos:
        raise RowFault(Reason.NOT_APPLICABLE, f"{protocol.name} shows no videos; the sample has {len(videos)}")


def excerpt(text: str) -> str:
    """The text on one line, of at most 170 characters, quoted."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 160 else f"{flat[:120]} … {flat[-40:]}")
