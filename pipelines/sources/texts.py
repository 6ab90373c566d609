"""Questions and answers in somebody's rows: plain text, chat messages, placeholders, wrapping."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipelines.protocols.base import Malformed
from pipelines.protocols.boxed import one_answer
from pipelines.rejects import Reason, RowFault
from pipelines.sources.columns import Columns, first_named, value_at
from pipelines.sources.json_texts import list_in
from pipelines.sources.media import describe

_ASKING, _REPLYING = ("user", "human"), ("assistant", "gpt")
_PLACEHOLDER = re.compile(
    r"<(?:image|video)(?:_?\d+)?>|<\|vision_start\|>|<\|(?:image|video)_pad\|>|<\|vision_end\|>", re.IGNORECASE
)
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_OPEN_TAG = re.compile(r"<answer>", re.IGNORECASE)
_DOLLARS = (
    re.compile(r"\A\$\$([^$]+)\$\$\Z", re.DOTALL),
    re.compile(r"\A\$([^$]+)\$\Z", re.DOTALL),
    re.compile(r"\A\\\(((?:(?!\\\)).)+)\\\)\Z", re.DOTALL),
    re.compile(r"\A\\\[((?:(?!\\\]).)+)\\\]\Z", re.DOTALL),
)


def text_at(row: Mapping[str, Any], column: str) -> str:
    """A column's text, without blanks around it. Raises ``RowFault`` for anything but text and numbers."""
    return _text(value_at(row, column), column)


def question_of(row: Mapping[str, Any], columns: Columns) -> str:
    """The question, without placeholders of images and without the lines that the mapping drops."""
    name = first_named(row, columns.question)
    said = _without_placeholders(_said(value_at(row, name), name, _ASKING))
    if columns.drop_lines:
        said = "\n".join(line for line in said.splitlines() if not line.strip().startswith(columns.drop_lines))
    return said.strip()


def answer_of(row: Mapping[str, Any], columns: Columns) -> str:
    """The answer's text. Raises ``RowFault`` for a list, unless the mapping knows it for accepted spellings."""
    name = first_named(row, columns.answer)
    value = value_at(row, name)
    if columns.answer_list == "first" and not _is_conversation(value):
        value = _first(value, name)
    said = _said(value, name, _REPLYING)
    if not columns.unwrap_answer:
        return said
    bare = unwrapped(said, name)
    return _text(_first(bare, name), name) if columns.answer_list == "first" else bare


def unwrapped(text: str, column: str) -> str:
    r"""What stands in ``<answer>``, ``\boxed{}`` or ``$``, else the text. Raises ``RowFault`` for what never closes."""
    tagged = _TAGGED.findall(text)
    if len(_OPEN_TAG.findall(text)) > len(tagged):
        raise RowFault(Reason.MALFORMED_ROW, f"column {column!r}: an <answer> is never closed: {describe(text)}")
    inner = tagged[-1].strip() if tagged else text.strip()
    box = one_answer(inner)
    if isinstance(box, Malformed):
        raise RowFault(Reason.MALFORMED_ROW, f"column {column!r}: {box.evidence}")
    inner = box.answer if box else inner
    for dollars in _DOLLARS:
        if found := dollars.match(inner):
            return found[1].strip()
    return inner


def _said(value: Any, column: str, roles: tuple[str, ...]) -> str:
    """The text itself, or the first message of ``roles`` in a conversation."""
    if not _is_conversation(value):
        return _text(value, column)
    for message in list_in(value) or []:
        if message.get("role", message.get("from")) in roles:
            return _content(message.get("content", message.get("value")), column)
    raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected a message of {' or '.join(roles)}, found none")


def _is_conversation(value: Any) -> bool:
    messages = list_in(value)
    return bool(messages) and all(
        isinstance(message, Mapping) and ("role" in message or "from" in message) for message in messages or []
    )


def _content(content: Any, column: str) -> str:
    """A message's text; of a list of parts, the texts in it."""
    if not isinstance(content, list | tuple):
        return _text(content, column)
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(_text(part, column) for part in parts if part is not None)


def _first(value: Any, column: str) -> Any:
    """The first of a list; a text is one if it spells a list of texts (``[0, 1]`` is an interval)."""
    values = list_in(value)
    if values is None or (isinstance(value, str) and not all(isinstance(one, str) for one in values)):
        return value
    if not values:
        raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected text, found an empty list")
    return values[0]


def _text(value: Any, column: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected text, found {describe(value)}")


def _without_placeholders(text: str) -> str:
    return re.sub(r"[ \t]{2,}", " ", _PLACEHOLDER.sub(" ", text)) if _PLACEHOLDER.search(text) else text
