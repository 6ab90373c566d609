"""Words that leave an answer open or turn it round. Counted, and compared with those of the expected answer."""

from __future__ import annotations

import re
from collections import Counter

from pipelines.answers import compatible

_HEDGES = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|probably|presumably|might|may be|could be|alternatively|not sure|unsure"
    r"|uncertain|i guess|i think|unclear|unless|if not|and/or|whichever|depends"
    r"|(?:one|some|any|all|none|either) of (?:the (?:above|options|choices)|them|these|those)"
    r"|hard to say|cannot tell|can't tell|likely)\b|\?"
)
_TURNS = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|except|cannot|wrong|false|incorrect|untrue|mistaken|opposite|contrary"
    r"|instead of|rather than|anything but|but|far from|fails? to|denies|isnt|arent|wasnt|doesnt|dont)\b|n't\b"
)


def hedging_words(text: str) -> Counter[str]:
    """The words that leave it open which of several things is meant."""
    return Counter(_HEDGES.findall(_plain(text)))


def turning_words(text: str) -> Counter[str]:
    """The words that deny, or say that something is wrong."""
    return Counter(_TURNS.findall(_plain(text)))


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().replace("’", "'").split())
