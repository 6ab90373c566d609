"""Counts of a shard beside its samples: what a mapping left unread, choices of labels, rows that contradict each other.

    notes = IntakeNotes()
    for row in source.rows(0):
        notes.add_row(row)
    notes.lines()         # [NoteLine(40, "column id not read", "q.jsonl:1"), …]

A ``column`` is unread where the mapping names no part of it, a ``field`` where it names others of the same structure, a
``turn`` where a message of a conversation became neither question nor answer nor context.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from darkroom.pipelines.records import Sample
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.columns import ANSWER_FIELDS, BESIDE, TEMPLATE, Columns, alternatives, list_in, value_at
from darkroom.pipelines.sources.media import is_conversation

MANY_ROWS = 1000
"""About one image: a join by the wrong key, more often than a source."""


class NoteLine(NamedTuple):
    """A finding: its number, its words, and an example (or nothing)."""

    n: int
    what: str
    example: str = ""


@dataclass(slots=True)
class IntakeNotes:
    """The notes on a shard's rows and samples, or the lines of several shards; in memory a few words a sample."""

    _lines: dict[str, NoteLine] = field(default_factory=dict)
    _answers: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)
    _images: Counter[str] = field(default_factory=Counter)

    def add(self, n: int, what: str, example: str = "") -> None:
        """Add ``n`` to the line ``what``, which keeps its first example."""
        line = self._lines.get(what, NoteLine(0, what, example))
        self._lines[what] = line._replace(n=line.n + n)

    def add_row(self, row: SourceRow | BadRow) -> None:
        """Count what the row's mapping did not read, and how it chose the label."""
        if isinstance(row, SourceRow):
            for line in filter(None, (*(f"{label} not read" for label in row.unread), row.label_choice)):
                self.add(1, line, row.row)

    def add_sample(self, sample: Sample) -> None:
        """Compare the answer with that of an earlier row about the same; count rows by image."""
        media = [*(image.sha256 for image in sample.images), *(video.sha256 for video in sample.videos)]
        key = (sample.question, sample.choices, *media)
        row, answer = self._answers.setdefault(key, (sample.source_row, sample.answer))
        if answer != sample.answer:
            example = f"{row} says {answer[:60]!r}, {sample.source_row} {sample.answer[:60]!r}"
            self.add(1, "another answer to the same question about the same images, within a shard", example)
        self._images.update({image.sha256 for image in sample.images})

    def lines(self) -> list[NoteLine]:
        """One line a finding, the most frequent first."""
        repeated = (
            NoteLine(n, f"rows about one image, {name[:12]}") for name, n in self._images.items() if n >= MANY_ROWS
        )
        return sorted((*self._lines.values(), *repeated), key=lambda line: -line.n)


def unread_in(row: Mapping[str, Any], columns: Columns) -> tuple[str, ...]:
    """The labels of a row (``column id``, ``field extra.index``): what has a value, and no name in ``columns``."""
    read = {name for group in columns.needed() for name in group} | columns.derived.keys()
    if columns.transcript is not None:
        return tuple(_unnamed(row, read | {*alternatives(columns.question), *alternatives(columns.images)}))
    values = (value_at(row, name) for name in alternatives(columns.answer))
    answers = (entry for value in values if not is_conversation(value) for entry in list_in(value) or ())
    fields = {str(key) for entry in answers if isinstance(entry, Mapping) for key in entry}
    return (*_unnamed(row, read), *(f"field {key} of answers" for key in sorted(fields.difference(ANSWER_FIELDS))))


def _unnamed(fields: Mapping[str, Any], read: set[str], prefix: str = "") -> Iterator[str]:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if name in read or name in (BESIDE, TEMPLATE) or value in (None, "", [], {}):
            continue
        if not any(deeper.startswith(f"{name}.") for deeper in read):
            yield f"{'field' if prefix else 'column'} {name}"
        elif isinstance(value, Mapping):
            yield from _unnamed(value, read, f"{name}.")
