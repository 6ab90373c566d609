"""Accepted records as samples for RL, and as the source ``accepted_annotations`` for the SFT families.

    darkroom materialize accepted_annotations --family crop

The source holds the workspace's own campaign, not an imported recording, in one shard. Its target is the smallest box
around all that people drew: a crop must show everything that the question counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.tables import ACCEPTED, RECORDED
from darkroom.pipelines.records import Annotated, ImageRef, PoolImage, Sample, Truth, TruthBox, to_row
from darkroom.pipelines.records.annotation import Annotators
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.geometry import box_from_frame
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.images import ImageMissing
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class AcceptedSource:
    """Rows of the table ``accepted_annotations``, with the stored images, without people's names."""

    workspace: Workspace = field(default_factory=Workspace.from_environment)
    name: str = field(default=ACCEPTED.asset[0], init=False)

    @property
    def n_shards(self) -> int:
        tables = self.workspace.tables
        return int(tables.exists(ACCEPTED) and tables.n_rows(ACCEPTED) > 0)

    @property
    def fingerprint(self) -> str:
        tables = self.workspace.tables
        return digest([tables.fingerprint(ACCEPTED), tables.fingerprint(POOL)])

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        for record in read_shown(self.workspace, ACCEPTED):
            try:
                image = self.workspace.images.read(record.image)
            except ImageMissing as error:
                yield BadRow(record.source_row, Reason.MISSING_IMAGE, str(error), {"question": record.question})
                continue
            truth = Truth(boxes=_around(record.boxes), count=record.count)
            yield SourceRow(
                record.source_row, (image,), record.question, record.answer, (), truth, record.category, record.license
            )


def _around(boxes: Sequence[TruthBox]) -> tuple[TruthBox, ...]:
    if len(boxes) < 2:
        return tuple(boxes)
    x1, y1, x2, y2 = zip(*(box.box for box in boxes), strict=True)
    return (TruthBox(boxes[0].label, min(x1), min(y1), max(x2), max(y2)),)


def read_shown(workspace: Workspace, key: TableKey) -> list[Annotated]:
    """A table's records to train on: about the view where people saw one, since the sandbox opens no larger image."""
    pool = replace(POOL, partition=key.partition)
    views = {item.image.sha256: item.view for item in workspace.tables.read(pool, PoolImage)}
    return [as_shown(row, views.get(row.image.sha256)) for row in workspace.tables.read(key, Annotated)]


def as_shown(row: Annotated, view: ImageRef | None) -> Annotated:
    """The record about the ``view`` of its image; boxes become the smallest ones that cover the same area of it."""
    if view is None:
        return row
    size = (row.image.width, row.image.height)
    boxes = (TruthBox(box.label, *box_from_frame(box.box, size, view.width, view.height)) for box in row.boxes)
    return replace(row, image=view, boxes=tuple(boxes))


class AcceptedRecords(NamedTuple):
    """Accepted records as samples, and who wrote them."""

    samples: list[Sample]
    annotators: Annotators
    from_drafts: frozenset[str] = frozenset()
    """Samples whose first person saw a policy's draft."""


def read_accepted(workspace: Workspace) -> AcceptedRecords:
    """The records of the workspace's own campaign, else those of a recording; empty without either."""
    if (key := _accepted_key(workspace)) is None:
        return AcceptedRecords([], "people")
    campaign, rows = workspace.tables.facts(key)["notes"]["campaign"], read_shown(workspace, key)
    samples = [to_sample(row, campaign=campaign) for row in rows]
    from_drafts = (sample.sample_id for sample, row in zip(samples, rows, strict=True) if row.pre_annotated)
    return AcceptedRecords(samples, annotators_of(workspace), frozenset(from_drafts))


def annotators_of(workspace: Workspace) -> Annotators:
    """Who wrote the accepted records: people, or a simulation of some."""
    key = _accepted_key(workspace)
    return cast(Annotators, workspace.tables.facts(key)["notes"].get("annotators", "people") if key else "people")


def _accepted_key(workspace: Workspace) -> TableKey | None:
    keys = (ACCEPTED, replace(ACCEPTED, partition=RECORDED))
    return next((key for key in keys if workspace.tables.exists(key) and workspace.tables.n_rows(key)), None)


def to_sample(row: Annotated, *, campaign: str) -> Sample:
    """An accepted record as a sample: the question, its answer and the boxes, without people's names."""
    content = {"images": [row.image.sha256], "question": row.question, "answer": row.answer, "boxes": to_row(row.boxes)}
    origin = (f"annotation/{campaign}", row.source_row, row.license)
    truth = Truth(boxes=row.boxes, count=row.count)
    return Sample(digest(content), *origin, (row.image,), row.question, (), row.answer, truth, row.category)
