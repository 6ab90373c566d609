r"""The markup that protocols share: turns, tags in any case, code fences, line ends, answers in ``\boxed{…}`` with
balanced braces, where ``\{`` and ``\}`` are letters, as in LaTeX."""

import re
from dataclasses import dataclass
from functools import cache

from darkroom.pipelines.records import Edit

_FENCE, _FENCE_END = re.compile(r"\A\s*+```(?:python3?|py3?)?+[ \t]*+\n", re.IGNORECASE), "```"
_ANSWER = re.compile(r"<answer>(.*?)(</answer>|\Z)", re.DOTALL | re.IGNORECASE | re.ASCII)
_LINE_END = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """The parts of a turn: a thought, then either code to run or the final answer."""

    thought: str
    code: str | None = None
    answer: str | None = None
    mended: tuple[Edit, ...] = ()
    """Calls that were read though not spelled as the protocol writes them, with what was mended in ``kind``."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A turn that cannot be parsed: the reason, with an excerpt."""

    evidence: str


@cache
def tag(*names: str, before: str = "") -> re.Pattern[str]:
    """Any of the tags ``<name>``, in any case, after ``before``; ``/name`` is a closing tag and ``/?name`` either."""
    return re.compile(rf"{before}<(?:{'|'.join(names)})>", re.IGNORECASE | re.ASCII)


def split_at_tag(text: str, name: str) -> tuple[str, str, str] | None:
    """The text before the first ``<name>``, inside and after it; None without one. A missing end is the text's."""
    if (opening := tag(name).search(text)) is None:
        return None
    closing = tag(f"/{name}").search(text, opening.end())
    end, after = closing.span() if closing else (len(text), len(text))
    return text[: opening.start()], text[opening.end() : end], text[after:]


def another_container(text: str, name: str, start: int = 0) -> bool:
    """Return whether ``<name>`` is the first in ``text`` from ``start`` on, apart from whitespace."""
    return tag(name, before=r"\s*").match(text, start) is not None


def code_or_answer(text: str, *, sandbox: str) -> ParsedTurn | Malformed:
    """The text before ``<code>`` or ``<answer>`` and inside that tag, both verbatim. Malformed: an answer before the
    code, two answers, neither, a tag that only the ``sandbox`` writes."""
    parts = split_at_tag(text, "code")
    thought = parts[0] if parts else text
    if tag(f"/?{sandbox}").search(thought):
        return Malformed(f"the turn has a sandbox's marker of its own: {excerpt(thought)}")
    answers = closed_answers(thought)
    if parts:
        if answers:
            return Malformed(f"the turn answers before its code: {excerpt(thought)}")
        return ParsedTurn(thought, code=parts[1])
    if len(answers) != 1:
        what = "neither <code> nor <answer>" if not answers else f"{len(answers)} <answer> blocks"
        return Malformed(f"the turn has {what}: {excerpt(thought)}")
    return ParsedTurn(thought[: answers[0].start()], answer=answers[0][1])


def closed_answers(text: str) -> list[re.Match[str]]:
    """Every ``<answer>`` that is closed; group 1 is its content. The rest is searched once for an end, not per tag."""
    return [answer for answer in _ANSWER.finditer(text) if answer[2]]


def without_stray_tags(turn: ParsedTurn, *names: str) -> ParsedTurn | Malformed:
    """The turn, if none of these tags is in its thought or answer, where it would have no partner."""
    markers = tag(*(f"/?{name}" for name in names))
    stray = markers.search(turn.thought) or markers.search(turn.answer or "")
    return Malformed(f"the turn has a {stray[0]} without its partner: {excerpt(stray.string)}") if stray else turn


def fenced_code(block: str) -> str | Malformed:
    """The code in a block, with or without a fence."""
    while (inner := unfenced(block)) is not None:
        block = inner
    if not block.strip():
        return Malformed("the code is empty")
    if block.lstrip().startswith("```"):
        return Malformed(f"the code begins with a fence that is not one ```python block: {excerpt(block)}")
    return block


def unfenced(block: str) -> str | None:
    """The content of one ```` ```python ```` fence around the whole block; None without one."""
    fence = _FENCE.match(block)
    inner = block.rstrip()[fence.end() :] if fence else ""
    return inner.removesuffix(_FENCE_END).rstrip(" \t").removesuffix("\n") if inner.endswith(_FENCE_END) else None


def lines(text: str) -> str:
    """``text`` with ``\\n`` as its only line end, as Python reads source code."""
    return _LINE_END.sub("\n", text)


_OPENING = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Boxed:
    """One box: its position in the text and its content, stripped."""

    start: int
    end: int
    answer: str


def write_box(answer: str) -> str:
    return rf"\boxed{{{answer}}}"


def fits_a_box(answer: str) -> bool:
    """Return whether the boxed answer parses as itself: its braces are balanced and the last one is not escaped."""
    text = write_box(answer)
    return find_boxes(text) == [Boxed(0, len(text), answer)]


def one_answer(text: str) -> Boxed | Malformed | None:
    """The last box of the text, if all non-empty boxes are equal; None without a box."""
    boxes = find_boxes(text)
    if isinstance(boxes, Malformed):
        return boxes
    if not boxes:
        return None
    if not (filled := [box for box in boxes if box.answer]):
        return Malformed(rf"the \boxed answer is empty: {excerpt(text)}")
    answers = dict.fromkeys(box.answer for box in filled)
    if len(answers) > 1:
        return Malformed(f"the turn has {len(answers)} different boxed answers: {excerpt(', '.join(answers))}")
    return filled[-1]


def find_boxes(text: str) -> list[Boxed] | Malformed:
    """Every outermost box, in order."""
    boxes: list[Boxed] = []
    end = 0
    while opening := _OPENING.search(text, end):
        if (closing := _closing_brace(text, opening.end())) is None:
            return Malformed(rf"a \boxed{{ is never closed: {excerpt(text[opening.start() :])}")
        end = closing + 1
        boxes.append(Boxed(opening.start(), end, text[opening.end() : closing].strip()))
    return boxes


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.start()
    return None


def excerpt(text: str) -> str:
    """The text on one line, of at most 170 characters, quoted."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 160 else f"{flat[:120]} … {flat[-40:]}")
