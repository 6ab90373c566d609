"""Tool calls as models spell them: the name and the arguments of one call, and what was mended.

    {'name': 'crop_image_normalized', 'arguments': '{"bbox_2d": [0.1, 0.2, 0.3, 0.4],}'}}

Only what has one reading is mended: punctuation around whole values, never a value. Any other call is malformed.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.models.parsing import literal
from darkroom.pipelines.models.protocols.markup import Malformed, excerpt

_FUNCTION = re.compile(r"\A\s*<function=([\w.-]{1,64})>")
_FENCE = re.compile(r"\A\s*```(?:json|tool_call)?[ \t]*\n")
_BRACKETS = re.compile(r"[\s}\]]*")
_DECODER = json.JSONDecoder(strict=False)  # strings may contain unescaped line ends
_ERRORS = (ValueError, RecursionError)
_PARTS = {"name", "arguments", "parameters", "id", "type"}


@dataclass(frozen=True, slots=True)
class SpelledCall:
    """A call's name and arguments as JSON values; ``mended`` says what was."""

    name: str
    arguments: Any
    mended: tuple[str, ...] = ()


def spelled_call(text: str) -> SpelledCall | Malformed:
    """Read one call: JSON, also in a fence, with Python's quotes and commas, with brackets missing or too many at its
    end, its arguments in a text or called ``parameters``; or Qwen3.5's ``<function=NAME><parameter=KEY>``."""
    if opening := _FUNCTION.match(text):
        return _function(opening[1], text[opening.end() :].rstrip().removesuffix("</function>"))
    mended: list[str] = []
    try:
        fields = _DECODER.decode(text.strip())
    except _ERRORS as error:
        if (found := _mended(text)) is None:
            return Malformed(f"the call is not JSON ({error}): {excerpt(text)}")
        fields, mended = found
    if isinstance(fields, dict) and isinstance(fields.get("function"), dict):
        fields = fields["function"]
        mended.append("function")
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        return Malformed(f"the call has no name: {excerpt(text)}")
    if (more := fields.keys() - _PARTS) or {"arguments", "parameters"} <= fields.keys():
        parts = ", ".join(sorted(map(str, more))) or "arguments and parameters"
        return Malformed(f"the call has {parts}: {excerpt(text)}")
    if "parameters" in fields:
        mended.append("parameters")
    arguments = fields.get("arguments", fields.get("parameters"))
    if isinstance(arguments, str) and isinstance(value := json_value(arguments), dict):
        arguments = value
        mended.append("arguments in a text")
    return SpelledCall(fields["name"], arguments, tuple(mended))


def json_value(value: Any) -> Any:
    """The JSON value that a text holds, also a list without its brackets; any other value as it is."""
    if isinstance(value, str):
        for text in (value, f"[{value}]"):
            try:
                return _DECODER.decode(text.strip())
            except _ERRORS:
                continue
    return value


def _function(name: str, body: str) -> SpelledCall | Malformed:
    before, *parameters = body.split("<parameter=")
    arguments: dict[str, str] = {}
    for parameter in parameters:
        key, _, value = parameter.rstrip().partition(">")
        if not value.endswith("</parameter>") or key in arguments:
            return Malformed(f"<parameter={key}> stands twice or has no end: {excerpt(body)}")
        arguments[key] = value.removesuffix("</parameter>").removeprefix("\n").removesuffix("\n")
    if before.strip():
        return Malformed(f"<function={name}> has text beside its parameters: {excerpt(body)}")
    return SpelledCall(name, arguments, ("<function=…>",))


def _mended(text: str) -> tuple[Any, list[str]] | None:
    """The object of a call that is no JSON, and what was mended; None where there is more than one reading."""
    mended: list[str] = []
    text = text.strip()
    if (fence := _FENCE.match(text)) and text.endswith("```"):
        text = text[fence.end() :].removesuffix("```").strip()
        mended.append("a fence")
    for missing in ("", "}", "}}"):
        try:
            value, end = _DECODER.raw_decode(text + missing)
        except _ERRORS:
            continue
        if _BRACKETS.fullmatch(text, end):
            if missing or end < len(text):
                mended.append("brackets at the end")
            return value, mended
    value = literal(text)
    return None if value is None else (value, [*mended, "Python's spelling"])
