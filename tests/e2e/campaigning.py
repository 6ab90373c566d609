"""A campaign under way on a Label Studio of its own, with people who log in at its pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import connect, find_task_url, server_of
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import materialize_pool
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import Record
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import AnnotationStages
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.labelling import Labelling, pool_of, write_campaign
from tests.own_studio import running
from tests.ports import free_port

AUTHOR, CHECKER, THIRD, EXPERT = "ann@example.com", "bob@example.com", "cy@example.com", "eve@example.com"
FOURTH = "dee@example.com"
AUTHORS_NAME = "Annabel Quill"
PASSWORD = "a secret of theirs 1"


@dataclass(frozen=True)
class Campaigning:
    """A campaign under way: its server, its data, and what the images show."""

    workspace: Workspace
    studio: LabelStudioClient
    rows: dict[str, SourceRow]

    def sync(self) -> list[Record]:
        """One sync; gives where every record stands."""
        campaign = Campaign.load(self.workspace.annotation)
        with Journal(self.workspace.annotation) as journal:
            Sync(journal, self.studio, campaign, say=lambda text: None).run(list(pool_of(self.workspace).values()))
            return AnnotationStages(self.workspace, campaign, journal, find_task_url(self.workspace, {})).read().records

    def project(self, round: str) -> int:
        with Journal(self.workspace.annotation) as journal:
            found = journal.project(round)
        assert found is not None
        return found[0]

    def item(self, page: Labelling) -> PoolImage:
        """The image that a page shows."""
        return pool_of(self.workspace)[page.data["image"].rpartition("/")[2]]

    def target(self, item: PoolImage) -> Box:
        """The small thing that the image's own question is about."""
        box = self.rows[item.source_row].truth.boxes[0]
        return Box(box.x1, box.y1, box.x2, box.y2)

    def image(self, item: PoolImage) -> Image.Image:
        return self.workspace.images.open(item.image).convert("RGB")


@contextmanager
def campaigning(home: Path, root: Path, scenes: tuple[int, ...]) -> Iterator[Campaigning]:
    """A campaign of these scenes; Label Studio is installed once per checkout (``root``)."""
    data = Path(os.environ.get("DARKROOM_HOME") or root / "data").absolute()
    environments = os.environ.get("DARKROOM_ENVIRONMENTS") or str(data / "environments")
    rows = write_campaign(home, scenes)
    with (
        Workspace.from_environment({"DARKROOM_HOME": str(home), "DARKROOM_ENVIRONMENTS": environments}) as workspace,
        running(server_of(workspace), port=free_port()),
        connect(workspace, {}) as studio,
    ):
        studio.add_person(AUTHOR, role="annotator", password=PASSWORD, name=AUTHORS_NAME)
        for email, role in ((CHECKER, "annotator"), (THIRD, "annotator"), (FOURTH, "annotator"), (EXPERT, "expert")):
            studio.add_person(email, role=role, password=PASSWORD)
        materialize_pool(workspace, Campaign.load(workspace.annotation), workspace.annotation)
        made = Campaigning(workspace, studio, rows)
        made.sync()
        yield made
