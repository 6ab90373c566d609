"""The claims in a thought or a comment about what can be seen and what is done to the image, by their words.

Measured on sentences that were written before the patterns, half of them not looked at while the patterns were
written: ``python -m measurements.claims``.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from darkroom.pipelines.verification.grading.word_lists import read_words

ClaimKind = Literal["too_small", "clear", "lit", "too_faint", "turned", "upright", "enlarge", "zoom", "turn", "relight"]
_PATTERNS: dict[str, re.Pattern[str]] = {
    kind: re.compile("|".join(patterns), re.IGNORECASE | re.VERBOSE) for kind, patterns in read_words(__file__).items()
}
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_QUOTED = re.compile(r"'[^'\n]{3,80}'(?!\w)|\"[^\"\n]{3,80}\"|“[^”\n]{3,80}”")
_DENIED = re.compile(
    r"\b(?:not|no|never|nothing|cannot|without|neither|nor|hardly|barely|nobody|would|could|might|if|whether|unless|until"
    r"|(?:no|any) need to|than)\b|n['’]t\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\b(?:nothing|neither|nobody|no (?:need|reason|point|use))\b", re.IGNORECASE)
_TURN = re.compile(r"\b(?:but|so|because|while|then|instead)\b", re.IGNORECASE)
"""What a sentence says after this, "nothing" before it no longer denies; a list of things it denies to its end."""
_CLAUSE = re.compile(r"[,:]\s|\b(?:but|so|because|while|before|then|and)\b", re.IGNORECASE)
_STILL = re.compile(r"\b(?:still|even (?:now|enlarged)|remains?)\b", re.IGNORECASE)
_MAX_CHARS = 16_000


class Claim(NamedTuple):
    """What is claimed, in which words; ``of_now``: expressly of what was shown last ("still too small")."""

    kind: ClaimKind
    words: str
    of_now: bool


def claims_in(text: str) -> Iterator[Claim]:
    """The claims of a text, sentence by sentence; nothing is claimed by a question, a denial or a quotation."""
    for sentence in _SENTENCE.split(_QUOTED.sub("''", text[:_MAX_CHARS])):
        plain = " ".join(sentence.split())
        if plain.endswith("?"):
            continue
        of_now = bool(_STILL.search(plain))
        for kind, pattern in _PATTERNS.items():
            for match in pattern.finditer(plain):
                if not _is_denied(plain, match):
                    yield Claim(kind, match[0].strip(), of_now)  # type: ignore[arg-type]  # the file's keys are kinds
                    break


def _is_denied(sentence: str, match: re.Match[str]) -> bool:
    """Whether the clause denies it before the words of the claim begin."""
    end = match.start()
    return any(
        denial.search(sentence, max((clause.end() for clause in boundary.finditer(sentence, 0, end)), default=0), end)
        for denial, boundary in ((_DENIED, _CLAUSE), (_NOTHING, _TURN))
    )
