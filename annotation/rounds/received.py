"""What people did between two pulls, in numbers.

Label Studio's annotations are more than that: the ones that exclude an annotator from a task are empty, and each later
state of an annotation is another revision.
"""

import json
import sqlite3
from contextlib import closing
from typing import NamedTuple

from darkroom.annotation.rounds.journal import Journal


class Received(NamedTuple):
    """People's work: annotations that are new, and older ones whose content has changed."""

    n_submitted: int
    n_skipped: int
    n_edited: int

    def __str__(self) -> str:
        parts = [f"{self.n_submitted:,} submission{'' if self.n_submitted == 1 else 's'}"]
        parts += [f"{self.n_skipped:,} skipped"] if self.n_skipped else []
        parts += [f"{self.n_edited:,} edited"] if self.n_edited else []
        return ", ".join(parts)


def last_revision(journal: Journal) -> int:
    """The number of the newest revision; 0 for an empty journal."""
    with closing(sqlite3.connect(journal.path, timeout=60)) as reader:
        return int(reader.execute("select coalesce(max(seq), 0) from revisions").fetchone()[0])


def received_since(journal: Journal, after: int) -> Received:
    """The work in revisions after number ``after``; an annotation that is new and edited is one submission."""
    query = (
        "select r.annotation_id, r.raw, (select p.raw from revisions p where p.annotation_id = r.annotation_id "
        "and p.seq < r.seq order by p.seq desc limit 1) from revisions r where r.seq > ? order by r.seq"
    )
    n_submitted = n_skipped = 0
    new: set[int] = set()
    edited: set[int] = set()
    with closing(sqlite3.connect(journal.path, timeout=60)) as reader:
        for annotation_id, raw, previous in reader.execute(query, (after,)):
            annotation = json.loads(raw)
            if previous is not None:
                if annotation_id not in new and _content(annotation) != _content(json.loads(previous)):
                    edited.add(annotation_id)
                continue
            new.add(annotation_id)
            if annotation.get("was_cancelled"):
                n_skipped += 1
            elif annotation.get("result"):
                n_submitted += 1
    return Received(n_submitted, n_skipped, len(edited))


def _content(annotation: dict[str, object]) -> object:
    return annotation.get("result"), bool(annotation.get("was_cancelled"))
