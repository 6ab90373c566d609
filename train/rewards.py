"""Rewards of a rollout as pure functions of text and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.answers import matches

_FORMAT = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)
_TAGS = re.compile(r"</?(?:think|answer)>")


def accuracy(answer: str | None, gold: str, *, choices: Sequence[str] = ()) -> float:
    """1.0 when ``answer`` is ``gold`` by rule (Thyme §4.4, Result Reward, without the judge); no answer is wrong."""
    return float(answer is not None and matches(answer, gold, choices))


def formatted(text: str) -> float:
    """1.0 for one ``<think>…</think>`` followed by one ``<answer>…</answer>`` (Thyme §4.4, Formatting Reward).

    ``text`` is all that the model wrote in one rollout, without observations.
    """
    found = _FORMAT.fullmatch(text)
    return float(found is not None and len(_TAGS.findall(text)) == 4 and bool(found[2].strip()))


def thyme(*, result: float, consistency: float, format: float) -> float:
    """Thyme §4.4: ``r = result · (1 + 0.5 · consistency) + 0.5 · format`` (also in its appendix C, with any addition).

    Consistency counts only where the result does, so that a coherent wrong answer gains nothing. All in [0, 1]; the
    most that a rollout can get is 2.0.
    """
    return result * (1 + 0.5 * consistency) + 0.5 * format
