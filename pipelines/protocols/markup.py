"""The markup that protocols share: tags in any case, programs with or without a fence, line ends."""

from __future__ import annotations

import re
from functools import cache

from pipelines.protocols.base import Malformed, ParsedTurn, excerpt

_FENCE = re.compile(r"\A\s*```(?:python3?|py3?)?[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL | re.IGNORECASE)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE | re.ASCII)
_LINE_END = re.compile(r"\r\n?")


@cache
def tag(*names: str) -> re.Pattern[str]:
    """Any of the tags ``<name>``, in any case; ``/name`` is a closing tag and ``/?name`` either."""
    return re.compile(rf"<(?:{'|'.join(names)})>", re.IGNORECASE | re.ASCII)


def held(text: str, name: str) -> tuple[str, str, str] | None:
    """What is before the first ``<name>``, what it holds, and what follows; None where there is no such tag.

    A missing end (a stop string was cut off) is the end of the text.
    """
    opening = tag(name).search(text)
    if opening is None:
        return None
    closing = tag(f"/{name}").search(text, opening.end())
    end, after = closing.span() if closing else (len(text), len(text))
    return text[: opening.start()], text[opening.end() : end], text[after:]


def code_or_answer(text: str, *, sandbox: str) -> ParsedTurn | Malformed:
    """What stands before ``<code>`` or ``<answer>``, with what that tag holds, both as they are.

    Malformed: an answer before the code, two answers, neither, a tag that only the ``sandbox`` writes.
    """
    found = held(text, "code")
    said = found[0] if found else text
    if tag(f"/?{sandbox}").search(said):
        return Malformed(f"the turn has a sandbox's marker of its own: {excerpt(said)}")
    answers = list(_ANSWER.finditer(said))
    if found:
        if answers:
            return Malformed(f"the turn answers before its code: {excerpt(said)}")
        return ParsedTurn(said, code=found[1])
    if len(answers) != 1:
        what = "neither <code> nor <answer>" if not answers else f"{len(answers)} <answer> blocks"
        return Malformed(f"the turn has {what}: {excerpt(said)}")
    return ParsedTurn(said[: answers[0].start()], answer=answers[0][1])


def unmarked(turn: ParsedTurn, *names: str) -> ParsedTurn | Malformed:
    """The turn, if none of these tags is in its words: such a tag has no partner, and would be read otherwise."""
    markers = tag(*(f"/?{name}" for name in names))
    stray = markers.search(turn.thought) or markers.search(turn.answer or "")
    return Malformed(f"the turn has a {stray[0]} without its partner: {excerpt(stray.string)}") if stray else turn


def program(block: str) -> str | Malformed:
    """The program in a block, out of its fence if it has one."""
    while (inner := unfenced(block)) is not None:
        block = inner
    if not block.strip():
        return Malformed("the code is empty")
    if block.lstrip().startswith("```"):
        return Malformed(f"the code begins with a fence that is not one ```python block: {excerpt(block)}")
    return block


def unfenced(block: str) -> str | None:
    """What one ```` ```python ```` fence around the whole block holds; None where there is none."""
    found = _FENCE.match(block)
    return found[1] if found else None


def lines(text: str) -> str:
    """``text`` with ``\\n`` as its only line end, as Python itself reads a program."""
    return _LINE_END.sub("\n", text)
