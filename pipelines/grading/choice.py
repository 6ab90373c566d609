"""Multiple choice: the letter or the text of one choice, in the words in which models name it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.answers import letter_of
from pipelines.grading.spelling import bare

_NAMED = re.compile(r"\A(?:option|choice|answer)\s+(?=\(?[A-Z]\b)", re.IGNORECASE)
_BOXED_LETTER = re.compile(r"\A\(?\\(?:text|mathrm|textbf|mathbf)\s*\{\s*\(?([A-Z])\)?\.?\s*\}\)?\Z")


def chosen_letter(answer: str, choices: Sequence[str]) -> str | None:
    """The letter of the one choice that ``answer`` names; None if it names none or more than one."""
    text = bare(answer)
    if found := _BOXED_LETTER.match(text):
        text = found[1]
    # the words as they are come first: a choice may itself begin with "option"
    return letter_of(text, choices) or letter_of(_NAMED.sub("", text), choices)
