"""Questions of benchmarks that are found in training texts, by runs of words.

A run of 13 words that a benchmark's question and a training text share is a finding (Brown et al., 2020, appendix C);
a question that is shorter is one when it is a whole line of the training text. Runs, and whole questions, that several
questions about different images share are template text ("answer with the option's letter") and prove nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from darkroom.pipelines.selection.duplicates.words import Words, n_grams, words

N_WORDS = 13
TEMPLATE_ROWS = 3
"""What the questions about so many different images share is template text."""


class BenchmarkQuestion(NamedTuple):
    """A benchmark's question. ``about`` tells questions apart: the digest of its images, or of nothing but the text."""

    benchmark: str
    row: str
    text: str
    about: str


class PhraseMatch(NamedTuple):
    """Question number ``asked`` was found: all of it (``exact``), or ``share`` of its own runs, ``text`` among them."""

    asked: int
    exact: bool
    share: float
    text: str


class PhraseIndex:
    """The questions of all benchmarks, by their runs of ``n_words`` words."""

    def __init__(self, questions: Sequence[BenchmarkQuestion], *, n_words: int = N_WORDS) -> None:
        if n_words < 2:
            raise ValueError(f"runs have 2 words or more, found {n_words}")
        self._n_words = n_words
        abouts: defaultdict[Words, set[str]] = defaultdict(set)
        rows: defaultdict[Words, list[int]] = defaultdict(list)
        self._n_own = [0] * len(questions)
        texts = [words(question.text) for question in questions]
        for number, (question, text) in enumerate(zip(questions, texts, strict=True)):
            for run in set(n_grams(text, n_words)):
                abouts[run].add(question.about)
                rows[run].append(number)
        self._rows = {run: numbers for run, numbers in rows.items() if len(abouts[run]) < TEMPLATE_ROWS}
        for numbers in self._rows.values():
            for number in numbers:
                self._n_own[number] += 1

    def find(self, text: str) -> list[PhraseMatch]:
        """The questions of which the text has runs of their own, by number."""
        runs: defaultdict[int, list[Words]] = defaultdict(list)
        for run in dict.fromkeys(self._runs(text)):
            for number in self._rows.get(run, ()):
                runs[number].append(run)
        return [self._phrase(number, runs[number]) for number in sorted(runs)]

    def _runs(self, text: str) -> Iterable[Words]:
        """Runs of the whole text, and its short lines: a short question may stand above its choices."""
        yield from n_grams(words(text), self._n_words)
        for line in text.splitlines():
            of_line = words(line)
            if 0 < len(of_line) < self._n_words:
                yield of_line

    def _phrase(self, number: int, runs: Sequence[Words]) -> PhraseMatch:
        exact = len(runs[0]) < self._n_words
        return PhraseMatch(number, exact, len(runs) / self._n_own[number], " ".join(runs[0]))
