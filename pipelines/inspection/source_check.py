"""A trial of a source's mapping on its first rows, before anything is built: nothing of it stays in the workspace."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.records import Reject, Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources import Source
from darkroom.pipelines.sources.columns import Columns, alternatives
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.sources.intake_notes import IntakeNotes, NoteLine
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.stage_runs import reason_of

_ROLES = ("question", "answer", "choices", "images", "videos", "boxes", "category", "license")
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """A part of samples: the columns that the mapping names for it, how many samples have it, and the first one's."""

    role: str
    columns: str
    n_filled: int
    example: str


@dataclass(frozen=True, slots=True)
class FamilyUse:
    """A family: how many samples it can use, and why not the others, with their numbers."""

    family: str
    n_usable: int
    n_not_applicable: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """Result of a trial."""

    n_rows: int
    samples: Sequence[Sample]
    rejects: Sequence[Reject]
    notes: Sequence[NoteLine]
    columns: Sequence[ColumnUse]
    families: Sequence[FamilyUse]

    def as_json(self) -> dict[str, Any]:
        """Counts, for programs."""
        return {
            "n_rows": self.n_rows,
            "n_samples": len(self.samples),
            "rejects": dict(Counter(map(reason_of, self.rejects))),
            "notes": [note._asdict() for note in self.notes],
            **{name: [asdict(use) for use in getattr(self, name)] for name in ("columns", "families")},
        }


def check_source(
    source: Source, columns: Columns | None, recipes: Sequence[Recipe], store: ImageStore, *, n_rows: int
) -> SourceCheck:
    """Read the first rows into ``store``, a temporary one, and prepare their samples for each family. Raises
    ``SourceError`` where the boxes' frame does not fit their column."""
    intake, notes = ingest_shard(source, 0, store, n_rows=n_rows), IntakeNotes()
    notes.add_samples(intake.samples, Path(gettempdir()))
    used = [_column_use(role, columns, intake.samples) for role in _ROLES]
    families = [_family_use(recipe, intake.samples, store) for recipe in recipes]
    uses = [use for use in used if use.columns or use.n_filled]
    return SourceCheck(intake.n_in, intake.samples, intake.rejects, [*intake.notes, *notes.lines()], uses, families)


def _column_use(role: str, columns: Columns | None, samples: Sequence[Sample]) -> ColumnUse:
    named = getattr(columns, role, None) or ()
    names = [name for each in alternatives(named) for name in (columns.sources_of(each) if columns else ())]
    texts = [text for sample in samples if (text := _text(role, sample))]
    if role == "boxes" and columns is not None and names:
        names.append(f"({columns.box_frame or 'corners, not stated'})")
    constant = "a constant" if named and not names else ""
    return ColumnUse(role, " ".join(names) or constant, len(texts), texts[0][:_LONGEST] if texts else "")


def _text(role: str, sample: Sample) -> str:
    """A part of the sample as people read it; empty without one."""
    if role == "boxes":
        return "; ".join(f"{tuple(box.box)} of image {box.image + 1} {box.label!r}" for box in sample.truth.boxes)
    value = getattr(sample, role)
    if role in ("images", "videos"):
        return ", ".join(f"{media.width}x{media.height} {media.format}" for media in value)
    return value if isinstance(value, str) else "; ".join(value)


_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _family_use(recipe: Recipe, samples: Sequence[Sample], store: ImageStore) -> FamilyUse:
    reasons: Counter[str] = Counter()
    n_not_applicable = 0
    for sample in samples:
        try:
            recipe.prepared(sample, store)
        except RowError as error:
            n_not_applicable += error.reason == Reason.NOT_APPLICABLE
            reasons[_NUMBER.sub("…", error.evidence)] += 1  # measured figures differ from row to row
    return FamilyUse(recipe.family, len(samples) - reasons.total(), n_not_applicable, dict(reasons.most_common()))
