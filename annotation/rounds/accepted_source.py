"""The accepted records of the workspace's own campaign as the source ``accepted_annotations``, for the SFT families.

    darkroom materialize accepted_annotations --family crop

The target is the smallest box around all that people drew: a crop must show everything that the question counts. One
shard once a record is accepted, none before. Records of an imported recording are not among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.tables import ACCEPTED, read_shown
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.images import ImageMissing
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class AcceptedSource:
    """Rows of the table ``accepted_annotations``, with the stored images, without people's names."""

    workspace: Workspace = field(default_factory=Workspace.from_environment)

    @property
    def name(self) -> str:
        return ACCEPTED.asset[0]

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
            else:
                yield SourceRow(
                    row=record.source_row,
                    images=(image,),
                    question=record.question,
                    answer=record.answer,
                    truth=Truth(boxes=_around(record.boxes), count=record.count),
                    category=record.category,
                    license=record.license,
                )


def _around(boxes: Sequence[TruthBox]) -> tuple[TruthBox, ...]:
    if len(boxes) < 2:
        return tuple(boxes)
    starts, ends = [(box.x1, box.y1) for box in boxes], [(box.x2, box.y2) for box in boxes]
    corners = (*map(min, zip(*starts, strict=True)), *map(max, zip(*ends, strict=True)))
    return (TruthBox(boxes[0].label, *corners),)
