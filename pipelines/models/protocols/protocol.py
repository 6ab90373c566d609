"""The protocol interface: finds code and answers in a policy's turn, and wraps observations for it.

``parse`` reads a complete turn, ``stream`` the same turn in pieces, with the same result. Neither raises: a turn that
cannot be read is ``Malformed``, with the reason. Line ends are ``\\n`` in everything that a protocol reads or writes;
thoughts and answers are stripped of whitespace.

    stream = protocol.stream()
    for piece in pieces:
        temperature = 0.0 if stream.in_code else 1.0    # Thyme §4.3, GRPO-ATS: code is sampled greedily
        stream.feed(piece)
        if stream.ended:
            break
    turn = stream.finish()
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from darkroom.pipelines.models.messages import ImagePart, Message, Part, Text, joined
from darkroom.pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    another_container,
    excerpt,
    lines,
    tag,
    without_stray_tags,
)
from darkroom.pipelines.records import ImageRef, Observation, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError

Images = tuple[ImageRef, ...]
Videos = tuple[VideoRef, ...]


class Protocol(ABC):
    """One way of thinking with images. A subclass has the tags and the opening, and reads and writes turns."""

    name: str
    container: str
    """The tag that code stands in; its end is the end of a turn."""
    marker: str
    """The tag around an observation, which only the sandbox may write."""
    tags: tuple[str, ...]
    """The tags that no thought or answer holds."""
    modes: tuple[str, ...] = ("free",)
    """The system prompts (``free``: the policy decides whether to write code); the first is the default."""
    setup = ""
    """Code to run in the session before the policy's first code, not recorded; empty for none."""
    caption = ""
    """What stands before an image of an observation; ``{}`` is its number."""
    takes_several = False
    """Return whether containers directly after the first belong to the same turn."""
    takes_videos = False

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings after which a turn ends. A server may cut them off or ignore them; ``parse`` accepts both."""
        return (f"</{self.container}>",)

    def opening(self, question: str, images: Images, videos: Videos = (), *, mode: str = "free") -> tuple[Message, ...]:
        """The conversation before the first turn, as a trained model reads it: without any hint. Raises ``RowError``
        (not_applicable) for videos in a protocol without them, ``ValueError`` for an unknown mode."""
        if mode not in self.modes:
            raise ValueError(f"{self.name} has the modes {', '.join(self.modes)}; found {mode!r}")
        if videos and not self.takes_videos:
            raise RowError(Reason.NOT_APPLICABLE, f"{self.name} shows no videos; the sample has {len(videos)}")
        return self._opening(question, images, videos, mode)

    def parse(self, text: str) -> ParsedTurn | Malformed:
        """The parts of a turn. Text after its end is ignored, as if a stop string had cut it off."""
        turn = self._read(lines(text))
        return without_stray_tags(turn, *self.tags) if isinstance(turn, ParsedTurn) else turn

    def stream(self) -> TurnStream:
        """A parser for one turn that arrives in pieces."""
        return TurnStream(self)

    def write_round(self, thought: str, code: str, *, first: bool) -> str:
        """A turn with code, as text; inverse of ``parse``. Raises ``RowError`` (malformed_turn) for text that no turn
        can contain, such as a thought with ``<code>`` in it."""
        return self._checked(ParsedTurn(lines(thought).strip(), code=lines(code)), first)

    def write_answer(self, thought: str, answer: str, *, first: bool) -> str:
        """The last turn, as text; raises as ``write_round`` does. ``first``: it is also the only one."""
        return self._checked(ParsedTurn(lines(thought).strip(), answer=lines(answer).strip()), first)

    def wrap(self, observation: Observation) -> tuple[Part, ...]:
        """An observation as the policy reads it: output, error, images in the order in which they were shown."""
        texts = (observation.text.strip(), observation.error or "")
        parts: list[Part] = [Text(f"<{self.marker}>\n"), *(Text(f"{text}\n") for text in texts if text)]
        for number, image in enumerate(observation.images, start=1):
            parts += [Text(self.caption.format(number)), ImagePart(image), Text("\n")]
        return joined([*parts, Text(f"</{self.marker}>")])

    def _checked(self, turn: ParsedTurn, first: bool) -> str:
        text = self._written(turn, first)
        if (parsed := self.parse(text)) == turn:
            return text
        why = parsed.evidence if isinstance(parsed, Malformed) else f"it would be read otherwise: {excerpt(text)}"
        raise RowError(Reason.MALFORMED_TURN, f"{self.name} cannot hold these words: {why}")

    @abstractmethod
    def _opening(self, question: str, images: Images, videos: Videos, mode: str) -> tuple[Message, ...]:
        """Make the opening of ``opening``, with what the protocol takes."""

    @abstractmethod
    def _read(self, text: str) -> ParsedTurn | Malformed:
        """The parts of a turn whose line ends are ``\\n``; stray tags are found later."""

    @abstractmethod
    def _written(self, turn: ParsedTurn, first: bool) -> str:
        """The text that ``_read`` reads as ``turn``."""


def render(protocol: Protocol, parsed: ParsedTurn, *, first: bool) -> str:
    """The turn as text, with code or with the answer; inverse of ``parse``."""
    if parsed.code is not None:
        return protocol.write_round(parsed.thought, parsed.code, first=first)
    return protocol.write_answer(parsed.thought, parsed.answer or "", first=first)


class TurnStream:
    """A parser of one turn in pieces; ``finish`` returns what ``parse`` returns for the joined pieces. Each piece is
    scanned once, with the few characters before it in which a tag may have begun."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol, self._container = protocol, protocol.container
        self._text, self._position = "", 0
        self._closed_at: int | None = None
        self.in_code = False
        """The next character is code, its fence or its JSON; or the end of it."""
        self.ended = False
        """The turn is complete, further text is ignored. An answer is only complete when the policy stops."""

    def feed(self, text: str) -> None:
        """The next piece; ignored when the turn has ended."""
        if not self.ended:
            self._text += text
            while self._step():
                pass

    def finish(self) -> ParsedTurn | Malformed:
        return self._protocol.parse(self._text)

    def _step(self) -> bool:
        """Passes the next boundary between text and code, if it has arrived."""
        if self._closed_at is not None:
            return self._goes_on(self._closed_at)
        slash = "/" if self.in_code else ""
        if (boundary := tag(slash + self._container).search(self._text, self._position)) is None:
            longest = len(self._container) + len("</>")
            self._position = max(self._position, len(self._text) - longest + 1)
            return False
        self._position = boundary.end()
        if self.in_code:
            self._closed_at = boundary.end()
        self.in_code = not self.in_code
        return True

    def _goes_on(self, closed_at: int) -> bool:
        """Return whether another container of the turn begins behind an end; without one the turn has ended."""
        if not self._protocol.takes_several:
            self.ended = True
        elif another_container(self._text, self._container, closed_at):
            self._closed_at = None
        else:
            rest = self._text[closed_at:].lstrip()
            self.ended = not f"<{self._container}>".startswith(rest.lower())
        return self._closed_at is None
