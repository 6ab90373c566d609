"""The pieces of markup that protocols share: tags, fences, line ends."""

from __future__ import annotations

import re
from functools import cache

_FENCE = re.compile(r"\A\s*```(?:python3?|py3?)?[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL | re.IGNORECASE)
_LINE_END = re.compile(r"\r\n?")


@cache
def tag(*names: str) -> re.Pattern[str]:
    """Any of the tags ``<name>``, in any case; ``/name`` is a closing tag and ``/?name`` either."""
    return re.compile(rf"<(?:{'|'.join(names)})>", re.IGNORECASE | re.ASCII)


def held(text: str, name: str, *, start: int = 0) -> tuple[str, str, int] | None:
    """What is before the first ``<name>``, what it holds, and where it ends; without an end it reaches to the last.

    None where there is no such tag.
    """
    opening = tag(name).search(text, start)
    if opening is None:
        return None
    closing = tag(f"/{name}").search(text, opening.end())
    inside = text[opening.end() : closing.start() if closing else len(text)]
    return text[start : opening.start()], inside, closing.end() if closing else len(text)


def unfenced(block: str) -> str | None:
    """What one ```` ```python ```` fence around the whole block holds; None where there is none."""
    found = _FENCE.match(block)
    return found[1] if found else None


def lines(text: str) -> str:
    """``text`` with ``\\n`` as its only line end, as Python itself reads a program."""
    return _LINE_END.sub("\n", text)
