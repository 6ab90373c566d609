r"""Whether a rollout is written as its protocol demands: the format rewards.

    formatted("<think>I look.</think>\n<answer>red</answer>")                       # 1.0
    formatted("I look.\n\\boxed{red}", protocol="tool_call")                        # 1.0

A rollout is formatted when its protocol can take every turn of it apart, when only the last one answers, and when the
tags around it are as the paper has them. Programs need not have run: that is another reward.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

from pipelines.protocols import PROTOCOLS, ParsedTurn
from pipelines.protocols.boxed import Boxed, one_answer

_THYME = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)
_PYVISION = re.compile(r".*<answer>(.*?)</answer>\s*", re.DOTALL)
_SPANS = re.compile(r"<(/?)(think|answer)>")


class _Form(NamedTuple):
    code_end: re.Pattern[str]
    """After which a turn with code is over."""
    framed: Callable[[str], bool]
    """Whether what no single turn shows is in order."""


def formatted(text: str, *, protocol: str = "thyme") -> float:
    r"""1.0 for a rollout in the form of its protocol, else 0.0.

    ``text`` is all that the model wrote in one rollout, without observations. ``thyme``: one ``<think>…</think>``
    around all the programs, then one ``<answer>…</answer>`` (Thyme §4.4, Formatting Reward). ``pyvision``: one
    ``<answer>`` at the end with one ``\boxed{…}`` in it (PyVision-RL figure 8). ``tool_call``: every call is one, the
    answer is in one box, and ``<think>`` and ``<answer>``, which FIGR §3.2 names and its prompt does not, stand in
    pairs if they stand at all.
    """
    form = FORMS[protocol]
    *coded, last = _turns(text, form.code_end)
    parse = PROTOCOLS[protocol].parse
    read = [parse(turn) for turn in (*coded, last)]
    whole = all(isinstance(turn, ParsedTurn) for turn in read)
    ends = [turn.answer is not None for turn in read if isinstance(turn, ParsedTurn)]
    return float(whole and ends == [False] * len(coded) + [True] and form.framed(text))


def _turns(text: str, code_end: re.Pattern[str]) -> list[str]:
    """The turns, each with its end; the last one is what follows the last program."""
    ends = [0, *(found.end() for found in code_end.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


def _thyme(text: str) -> bool:
    found = _THYME.fullmatch(text)
    return found is not None and len(_SPANS.findall(text)) == 4


def _pyvision(text: str) -> bool:
    found = _PYVISION.fullmatch(text)
    return found is not None and isinstance(one_answer(found[1]), Boxed)


def _tool_call(text: str) -> bool:
    tags = [(found[2], bool(found[1])) for found in _SPANS.finditer(text)]
    pairs = list(zip(tags[::2], tags[1::2], strict=False))
    balanced = all(opening == (name, False) and closes for opening, (name, closes) in pairs)
    return balanced and not len(tags) % 2


FORMS: Mapping[str, _Form] = {
    "thyme": _Form(re.compile(r"</code>", re.IGNORECASE), _thyme),
    "pyvision": _Form(re.compile(r"</code>", re.IGNORECASE), _pyvision),
    "tool_call": _Form(re.compile(r"</tool_call>", re.IGNORECASE), _tool_call),
}
"""By protocol."""
