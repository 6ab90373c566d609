"""Yes and no, alone or in a sentence: "No, there is no person in it." to "Is there a person in the image?".

Around the yes or no may stand the question's words and words that say nothing of their own, with one denial if the
answer is no and none if it is yes: "No, the door is open" says two things and is neither.
"""

import re

from darkroom.pipelines.verification.grading.answer_text import bare, turning_words
from darkroom.pipelines.verification.grading.sentences import FILLERS, OFFERS, question_stems, stem
from darkroom.pipelines.verification.grading.word_lists import read_words

MAX_CHARS = 240
_DATA = read_words(__file__)
_POLARITY = dict.fromkeys(_DATA["yes"], True) | dict.fromkeys(_DATA["no"], False)
_AUXILIARY = frozenset(_DATA["auxiliary"])
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[,.;!]")
_MARKS = frozenset(",.;!")
_MIN_CONTENT = 3


def same_polarity(answer: str, expected: str, *, question: str) -> bool | None:
    """None where neither yes nor no is expected, or the question offers something else."""
    wanted = {"yes": True, "no": False}.get(bare(expected).casefold())
    if wanted is None or len(answer) > MAX_CHARS or "?" in answer or OFFERS.search(question) or turning_words(question):
        return None
    words = _WORD.findall(bare(answer).casefold().replace("’", "'"))
    if not words:
        return False
    polarity = _POLARITY.get(words[0])
    if polarity is not None and (len(words) == 1 or words[1] in _MARKS):
        rest = [word for word in words[1:] if word not in _MARKS]
        return polarity is wanted and (not rest or _says(rest, wanted, question))
    rest = [word for word in words if word not in _MARKS]
    return _content(question) <= {stem(word) for word in rest} and _says(rest, wanted, question)


def _says(words: list[str], wanted: bool, question: str) -> bool:
    n_denials = sum(turning_words(" ".join(words)).values())
    asked = question_stems(question)
    known = words[0] not in _POLARITY and all(
        stem(word) in asked or word in FILLERS or word in _AUXILIARY for word in words
    )
    return known and n_denials == (0 if wanted else 1)


def _content(question: str) -> set[str]:
    """The stems that a sentence which answers the question repeats."""
    words = [word for word in _WORD.findall(question.casefold()) if len(word) >= _MIN_CONTENT]
    content = {stem(word) for word in words if word not in FILLERS and word not in _AUXILIARY}
    return content or {""}
