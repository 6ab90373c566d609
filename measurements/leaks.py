"""Measures the filter for thoughts that show privileged facts: its recall and its false alarms.

    python -m measurements.leaks              # the table; a second
    python -m measurements.leaks --tuning     # and what it gets wrong in the half that it was tuned on
    python -m measurements.leaks --file new   # of a later day, by language as their method; also "after", "taught"
    python -m measurements.leaks --file voices_c   # in other voices, a to h; j: held out

Thoughts were written before the filter; it was tuned on one half (by a digest; all sentences of a template are in the
same half), and the other only measures it. ``later``, ``last`` and ``final`` were written after three versions of the
filter; the first two were tuned on afterwards. The filter sees the words alone: no hint, no answer, no image.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darkroom.pipelines.verification.checks.hint import hint_phrase, unseen_phrase
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

CASES = Path(__file__).parents[1] / "tests" / "pipelines" / "verification" / "checks" / "cases"
LATER = ("later", "last", "final")
PARTS = ("tuned on", "held out", *LATER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A thought; ``way`` is how it leaks, empty where it does not. ``before``: no look has shown anything yet."""

    text: str
    method: str
    before: bool
    way: str = ""
    group: str = ""
    """The template that it was made from."""

    @property
    def part(self) -> str:
        if self.method in LATER:
            return self.method
        return PARTS[hashlib.sha256((self.group or self.text).encode()).digest()[0] % 2]

    @property
    def phrase(self) -> str | None:
        """The words for which the filter rejects it."""
        return hint_phrase(self.text) or (unseen_phrase(self.text) if self.before else None)


def read_thoughts(name: str) -> list[Thought]:
    lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Thought(**json.loads(line)) for line in lines]


def flagged(thoughts: Sequence[Thought]) -> Proportion:
    return proportion_of(thought.phrase is not None for thought in thoughts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tuning", action="store_true")
    parser.add_argument("--file", choices=["new", "after", "taught", *(f"voices_{x}" for x in "abcdefghj")])
    options = parser.parse_args()
    leaks, clean = (
        read_thoughts(f"{name}_{options.file}" if options.file else name) for name in ("leaks", "clean_thoughts")
    )
    for title, thoughts, key in (
        ("leaks found, by way", leaks, "way"),
        ("leaks found, by method", leaks, "method"),
        ("false alarms, by method", clean, "method"),
    ):
        print_table(title, thoughts, key)
    if options.tuning:
        print_errors(leaks, clean)


def print_table(title: str, thoughts: Sequence[Thought], key: str) -> None:
    print(f"\n| {title} | {' | '.join(PARTS)} |\n| --- | --- | --- | --- | --- | --- |")
    for value in [*sorted({getattr(thought, key) for thought in thoughts}), ""]:
        chosen = [thought for thought in thoughts if value in ("", getattr(thought, key))]
        cells = [_cell(flagged([thought for thought in chosen if thought.part == part])) for part in PARTS]
        print(f"| {value or 'all'} | {' | '.join(cells)} |")


def print_errors(leaks: Sequence[Thought], clean: Sequence[Thought]) -> None:
    for thought in (thought for thought in leaks if thought.part == PARTS[0] and thought.phrase is None):
        print(f"missed: {thought.text}")
    for thought in (thought for thought in clean if thought.part == PARTS[0] and thought.phrase is not None):
        print(f"false alarm for {thought.phrase!r}: {thought.text}")


def _cell(found: Proportion) -> str:
    if not found.of:
        return "–"
    low, high = found.interval
    return f"{found.n} of {found.of}: {found.n / found.of:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
