r"""What stands around an answer and does not belong to it: "The answer is", ``\boxed{}``, ``$``, ``**``, quotes."""

from __future__ import annotations

import re

from pipelines.answers import compatible

MAX_CHARS = 400
"""Longer answers are compared letter by letter only: nobody's final answer is that long."""

_LEAD = re.compile(
    r"\A(?:(?:so|thus|therefore|hence)[, ]+)?(?:the )?(?:final |correct |right )?(?:answer|result)"
    r"(?: is(?: therefore)?:?|:| =)\s+(?=\S)",
    re.IGNORECASE,
)
_WRAPPED = (
    re.compile(r"\A\\boxed\s*\{(.*)\}\Z", re.DOTALL),
    re.compile(r"\A\$\$(.+)\$\$\Z", re.DOTALL),
    re.compile(r"\A\$([^$]+)\$\Z", re.DOTALL),
    re.compile(r"\A\\\((.+)\\\)\Z", re.DOTALL),
    re.compile(r"\A\\\[(.+)\\\]\Z", re.DOTALL),
    re.compile(r"\A\*\*([^*]+)\*\*\Z", re.DOTALL),
    re.compile(r"\A\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}\Z"),
    re.compile(r"""\A["“”'‘’`]([^"“”'‘’`]*)["“”'‘’`]\Z"""),
)
_MAX_LAYERS = 6
_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\uff0d": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})


def bare(answer: str) -> str:
    """The answer alone: wrapping, lead-in and closing full stop removed, compatible letters unified."""
    text = compatible(answer).translate(_MINUS).strip()
    for _ in range(_MAX_LAYERS):
        inner = _without_one_layer(text)
        if inner == text:
            break
        text = inner
    return text


def _without_one_layer(text: str) -> str:
    text = _LEAD.sub("", text, count=1).strip()
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1].rstrip()
    for wrapped in _WRAPPED:
        if (found := wrapped.match(text)) and _balanced(found[1]):
            return found[1].strip()
    return text


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0
