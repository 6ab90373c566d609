"""Taking a recording in: its images are looked for, its submissions go the way of a live pull, its tables are made.

It has a journal of its own below ``<home>/annotation/recorded/`` and tables of its own (the partition ``recorded``), so
that a campaign in the same workspace never sees it. Doing it again adds nothing; killed, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from annotation.campaign import Campaign
from annotation.code import annotation_digest
from annotation.handover import Synced
from annotation.journal import Journal
from annotation.pool import POOL, reject_item
from annotation.recorded import RecordedServer
from annotation.recording import Recording
from annotation.stages import RECORDED, AnnotationStages
from annotation.sync import Say, Sync
from pipelines.decoding import probe
from pipelines.digest import digest
from pipelines.images import ImageMissing
from pipelines.records import PoolImage, Reject
from pipelines.rejects import Reason, RowFault
from pipelines.stages import Outcome, Report, run_stage
from pipelines.workspace import Workspace

RECORDED_POOL = replace(POOL, partition=RECORDED)


@dataclass(frozen=True, slots=True)
class RecordedCampaign:
    """One recording in one workspace."""

    workspace: Workspace
    recording: Recording

    @property
    def campaign(self) -> Campaign:
        """Its rules, as they were."""
        return self.recording.campaign

    def materialize_pool(self) -> Report:
        """The images that the workspace has; one that is missing or not what was recorded is a typed reject."""
        rows: list[PoolImage] = []
        rejects: list[Reject] = []
        for item in self.recording.images:
            try:
                self._check(item)
            except RowFault as fault:
                rejects.append(reject_item(item, fault, stage=POOL.asset[0]))
            else:
                rows.append(item)
        found = [[item.image.sha256 for item in rows], [one.evidence for one in rejects]]
        inputs = digest(["recorded_pool", self.recording.digest, found, annotation_digest()])
        outcome = Outcome(rows, rejects, len(self.recording.images))
        return run_stage(self.workspace.tables, RECORDED_POOL, PoolImage, inputs=inputs, perform=lambda: outcome)

    def take_in(self, journal: Journal, *, say: Say = print) -> Synced:
        """Every round, until nothing more comes in. Raises ``TableMissing`` without its pool."""
        pool = self.workspace.tables.read(RECORDED_POOL, PoolImage)
        known = journal.task_ids([task.key for task in self.recording.tasks])
        server = RecordedServer(self.recording, handed_out=known.values())
        sync, taken = Sync(journal, server, self.campaign, say=say), Synced()
        while True:
            synced = sync.run(pool)
            taken.n_revisions += synced.n_revisions
            taken.add(synced.imported)
            if not synced.imported and server.is_exhausted:
                return taken

    @contextmanager
    def stages(self, *, say: Say = print) -> Iterator[AnnotationStages]:
        """The stages of its tables, with everything taken in."""
        folder = self.workspace.annotation / RECORDED / self.campaign.name
        with Journal(folder) as journal:
            self.take_in(journal, say=say)
            yield AnnotationStages(self.workspace, self.campaign, journal, self._place, RECORDED)

    def _place(self, project: int, task: int) -> str:
        return f"task {task} in the recording of {self.campaign.name}"

    def _check(self, item: PoolImage) -> None:
        image = item.image
        try:
            found = probe(self.workspace.images.read(image))
        except ImageMissing as fault:
            raise RowFault(Reason.MISSING_IMAGE, f"{image.sha256} is not in this workspace: {fault}") from fault
        if (found.width, found.height) != (image.width, image.height):
            evidence = f"recorded as {image.width}x{image.height}; it has {found.width}x{found.height} pixels"
            raise RowFault(Reason.FOREIGN_FRAME, evidence)
        if max(found.width, found.height) <= self.campaign.min_side:
            evidence = f"{found.width}x{found.height}; the longer side needs more than {self.campaign.min_side} pixels"
            raise RowFault(Reason.TOO_SMALL_IMAGE, evidence)
