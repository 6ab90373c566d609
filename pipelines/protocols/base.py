"""What a protocol is: it finds code and answers in what a policy wrote, and wraps what comes back."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from pipelines.messages import Message, Part
from pipelines.records import ImageRef, Observation


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """One turn taken apart: a thought, then either code to run or the final answer."""

    thought: str
    code: str | None = None
    answer: str | None = None


class Protocol(typing.Protocol):
    """One way of thinking with images."""

    name: str
    stop: tuple[str, ...]
    """Strings after which a turn ends. A server may cut them off or ignore them; ``parse`` copes with both."""

    def opening(self, question: str, images: tuple[ImageRef, ...]) -> tuple[Message, ...]:
        """The conversation before the first turn, as a trained model sees it: no hint of any kind."""
        ...

    def parse(self, text: str) -> ParsedTurn:
        """Takes a turn apart. Raises ``RowFault`` (malformed_turn) when it holds neither code nor answer."""
        ...

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """A turn with code, as text: what ``parse`` takes apart again."""
        ...

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """The last turn, as text. ``first`` says that it is also the only one."""
        ...

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """What the policy is shown of an observation, markers included."""
        ...
