"""Reads a turn while it is being written: where code begins and ends, and when the turn is over.

    stream = protocol.stream()
    for piece in pieces:
        temperature = 0.0 if stream.in_code else 1.0    # Thyme §4.3, GRPO-ATS: code is sampled greedily
        stream.feed(piece)
        if stream.ended:
            break
    turn = stream.finish()

Every piece is looked at once, with the few characters before it in which a tag may have begun.
"""

from __future__ import annotations

from pipelines.protocols.base import Malformed, ParsedTurn, Protocol
from pipelines.protocols.markup import tag


class TurnStream:
    """One turn. ``finish`` gives what ``parse`` gives for all the pieces together, however they were cut."""

    def __init__(self, protocol: Protocol, *, container: str, one_only: bool = False) -> None:
        """Code is what ``container`` holds. ``one_only``: a second one right behind it spoils the turn."""
        self._protocol, self._container, self._one_only = protocol, container, one_only
        self._text, self._seen = "", 0
        self._closed_at: int | None = None
        self.in_code = False
        """The next character is code, its fence or its JSON; or the end of it."""
        self.ended = False
        """The turn is complete: nothing that follows counts. An answer is only complete when the policy stops."""

    def feed(self, text: str) -> None:
        """The next piece; ignored when the turn has ended."""
        if self.ended:
            return
        self._text += text
        while self._closed_at is None and self._step():
            pass
        if self._closed_at is not None:
            self.ended = not (self._one_only and self._may_repeat(self._text[self._closed_at :].lstrip()))

    def finish(self) -> ParsedTurn | Malformed:
        """The turn, as far as it came."""
        return self._protocol.parse(self._text)

    def _step(self) -> bool:
        """Over the next border between words and code, if it has come."""
        opening = "/" if self.in_code else ""
        found = tag(opening + self._container).search(self._text, self._seen)
        if found is None:
            longest = len(self._container) + len("</>")
            self._seen = max(self._seen, len(self._text) - longest + 1)
            return False
        self._seen = found.end()
        if self.in_code:
            self._closed_at = found.end()
        self.in_code = not self.in_code
        return True

    def _may_repeat(self, rest: str) -> bool:
        """Whether what follows may still become a second one."""
        opening = f"<{self._container}>"
        return len(rest) < len(opening) and opening.startswith(rest.lower())
