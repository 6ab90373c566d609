"""Counts beside samples: what a mapping left unread, choices of labels, rows that contradict each other.

    notes = IntakeNotes()
    for row in source.rows(0):
        notes.add_row(row)
    notes.lines()         # [NoteLine(40, "column id not read", "q.jsonl:1"), …]

Rows are counted shard by shard, and their lines added up; samples of a whole source together, by ``add_samples``.

A ``column`` is unread where the mapping names no part of it, a ``field`` where it names others of the same structure, a
``turn`` where a message of a conversation became neither question nor answer nor context.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import canonical, key64
from darkroom.pipelines.records.samples import LICENCE_REMEDY, is_licensed
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.columns import ANSWER_FIELDS, BESIDE, TEMPLATE, Columns, alternatives, list_in, value_at
from darkroom.pipelines.sources.media import is_conversation
from darkroom.pipelines.storage.row_files import KeyedSpill

MANY_ROWS = 1000
"""About one image: a join by the wrong key, more often than a source."""


class NoteLine(NamedTuple):
    """A finding: its number, its words, and an example (or nothing)."""

    n: int
    what: str
    example: str = ""


@dataclass(slots=True)
class IntakeNotes:
    """The notes on a shard's rows, or the lines of several shards, and the notes on a source's samples."""

    _lines: dict[str, NoteLine] = field(default_factory=dict)

    def add(self, n: int, what: str, example: str = "") -> None:
        """Add ``n`` to the line ``what``, which keeps its first example."""
        line = self._lines.get(what, NoteLine(0, what, example))
        self._lines[what] = line._replace(n=line.n + n)

    def add_row(self, row: SourceRow | BadRow) -> None:
        """Count what the row's mapping did not read, and how it chose the label."""
        if isinstance(row, SourceRow):
            for line in filter(None, (*(f"{label} not read" for label in row.unread), row.label_choice)):
                self.add(1, line, row.row)

    def add_samples(self, samples: Iterable[Sample], scratch: Path) -> None:
        """Compare each answer with that of the first row about the same; count rows by image. Answers wait on disk, in
        ``scratch``: of a sample some 40 bytes are in memory."""
        answers, images = KeyedSpill(scratch), array("Q")
        for sample in samples:
            digests = [image.sha256 for image in sample.images]
            media = [*digests, *(video.sha256 for video in sample.videos)]
            key = key64(canonical([sample.question, sample.choices, media]))
            first = answers.get(key)
            if first is None:
                answers.add(key, (sample.source_row, sample.answer))
            elif first[1] != sample.answer:
                example = f"{first[0]} says {first[1][:60]!r}, {sample.source_row} {sample.answer[:60]!r}"
                self.add(1, "another answer to the same question about the same images", example)
            images.extend(int(sha256[:16], 16) for sha256 in set(digests))
            if not is_licensed(sample.license):
                self.add(
                    1, f"rows without a licence, which do not ship by default: {LICENCE_REMEDY}", sample.source_row
                )
        names, counts = np.unique(np.array(images, np.uint64), return_counts=True)
        for name, n in zip(names[counts >= MANY_ROWS], counts[counts >= MANY_ROWS], strict=True):
            self.add(int(n), f"rows about one image, {f'{name:016x}'[:12]}")

    def lines(self) -> list[NoteLine]:
        """One line a finding, the most frequent first."""
        return sorted(self._lines.values(), key=lambda line: -line.n)


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
