"""How many paraphrased benchmark questions a comparison of words finds, and how many near questions it takes for them.

    python -m measurements.paraphrases          # questions without images, of measurements/paraphrases.txt

Each method scores a pair 0..1. Its threshold is the lowest that takes at most 1 % of the near questions
for the benchmark's own: found are the paraphrases above it.
"""

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.selection.duplicates.words import n_grams, words
from darkroom.pipelines.verification.grading.sentences import FILLERS, stem

MAX_FALSE = 0.01


class Pair(NamedTuple):
    """A benchmark's question and another one that asks the same or something else."""

    question: str
    other: str
    is_same: bool


def pairs() -> Iterator[Pair]:
    question = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line[:2] in ("= ", "! "):
            yield Pair(question, line[2:], line[0] == "=")
        elif not line.startswith("# "):
            question = line


def _jaccard(first: frozenset[object], second: frozenset[object]) -> float:
    return len(first & second) / len(first | second) if first | second else 0.0


def _content(text: str) -> frozenset[object]:
    return frozenset(stem(word) for word in words(text) if word not in FILLERS)


def _letters(text: str) -> frozenset[object]:
    joined = f" {' '.join(words(text))} "
    return frozenset(joined[at : at + 3] for at in range(len(joined) - 2))


METHODS: dict[str, Callable[[str, str], float]] = {
    "runs of three words": lambda a, b: _jaccard(frozenset(n_grams(words(a), 3)), frozenset(n_grams(words(b), 3))),
    "stems of content words": lambda a, b: _jaccard(_content(a), _content(b)),
    "runs of three letters": lambda a, b: _jaccard(_letters(a), _letters(b)),
    "words in order": lambda a, b: SequenceMatcher(None, words(a), words(b), autojunk=False).ratio(),
}


def main() -> None:
    measured = list(pairs())
    n_same = sum(pair.is_same for pair in measured)
    n_other = len(measured) - n_same
    print(
        f"{n_same} paraphrases, {n_other} near questions; at most {MAX_FALSE:.0%} of the near ones taken for the same"
    )
    for name, score in METHODS.items():
        same = sorted(score(pair.question, pair.other) for pair in measured if pair.is_same)
        other = sorted((score(pair.question, pair.other) for pair in measured if not pair.is_same), reverse=True)
        above = other[int(MAX_FALSE * n_other)]
        print(f"{name}: {sum(each > above for each in same)} of {n_same} found (above {above:.2f})")


if __name__ == "__main__":
    main()
