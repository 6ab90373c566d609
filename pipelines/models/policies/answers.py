"""What an endpoint's answer contains. Whatever was paid for is read, however odd: an error would be paid for again.

>>> read_answer({"choices": [{"message": {"content": [{"type": "text", "text": "a cat"}]}}], "usage": None}, 1)
EndpointAnswer(texts=('a cat',), finished=(True,), prompt_tokens=None, completion_tokens=None, model='')
"""

import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from darkroom.pipelines.models.policies.base import PolicyError
from darkroom.pipelines.records.reject_reasons import storable

_DEEPEST = 4
"""Lists and objects in one another that a message's content may have."""
_MOST_TOKENS = 10**9
"""Of one answer; a larger number is no count, and no table's column takes it."""
_VERSION = re.compile(r"(?:[-@:](?:latest|preview|exp|v?[0-9][0-9.]*))+")
"""What providers add to the name of a model: a date, a revision (``gpt-4o-2024-08-06``, ``claude@20240620``)."""


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """Texts of the choices, and whether the model ended them; tokens are None where no count can be read."""

    texts: tuple[str, ...]
    finished: tuple[bool, ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str


def read_answer(body: Any, n: int) -> EndpointAnswer:
    """The first ``n`` choices of a response. Raises ``PolicyError`` where it has no message, and counts no tokens."""
    fields = body if isinstance(body, dict) else {}
    listed = fields.get("choices")
    choices = [choice if isinstance(choice, dict) else {} for choice in listed[:n]] if isinstance(listed, list) else []
    used = fields.get("usage")
    prompt, completion = (
        _count(used.get(name)) if isinstance(used, dict) else None for name in ("prompt_tokens", "completion_tokens")
    )
    if not any(isinstance(choice.get("message"), dict) for choice in choices) and not completion:
        problem = "an answer without a choice" if listed == [] else "an answer that is no completion"
        raise PolicyError(f"{problem}: {body}")
    choices = choices or [{}]  # paid for, and withheld
    return EndpointAnswer(
        tuple(storable(_content_of(choice.get("message"))) for choice in choices),
        tuple(choice.get("finish_reason") != "length" for choice in choices),
        prompt,
        completion,
        fields["model"] if isinstance(fields.get("model"), str) else "",
    )


def warn_of_oddities(answer: EndpointAnswer, *, model: str, endpoint: str) -> None:
    """Says once what a user should look into: another model answers, or tokens are not counted."""
    if answer.model and not is_same_model(model, answer.model):
        _warn(f"{endpoint} answers as {answer.model[:200]!r} to requests for {model!r}: check DARKROOM_POLICY_MODEL")
    if answer.completion_tokens is None:
        _warn(f"{endpoint} does not say how many tokens {model} used: its calls count, with no tokens and no cost")


def is_same_model(requested: str, answering: str) -> bool:
    """Whether two names mean one model: an owner before it and a date or revision after it are as the provider likes.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    first, second = _bare(requested), _bare(answering)
    shorter, longer = sorted((first, second), key=len)
    return longer.startswith(shorter) and (
        longer == shorter or _VERSION.fullmatch(longer[len(shorter) :][:200]) is not None
    )


def _bare(name: str) -> str:
    last = name.rstrip("/").lower().rsplit("/", 1)[-1]
    return last.removesuffix("-latest").removesuffix(":latest")


@cache
def _warn(text: str) -> None:
    logging.getLogger(__name__).warning("warning: %s", text)


def _content_of(message: Any) -> str:
    return _text(message.get("content"), _DEEPEST) if isinstance(message, dict) else ""


def _text(content: Any, depth: int) -> str:
    """A text, none, or parts, of which those with a text count."""
    if isinstance(content, str):
        return content
    if content is None or depth == 0:
        return ""
    if isinstance(content, list):
        return "".join(_text(part, depth - 1) for part in content)
    if isinstance(content, dict):
        return _text(content.get("text", content.get("value")), depth - 1)
    return str(content)


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return count if 0 <= count <= _MOST_TOKENS else None
