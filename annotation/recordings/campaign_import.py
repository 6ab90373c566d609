"""Import of a recorded campaign: images are looked up, submissions validated as from a live server, tables built. Its
journal is below ``<home>/annotation/recorded/``, its tables are the partition ``recorded``, apart from a campaign in
the same workspace. Repeating it adds nothing; an interrupted one resumes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from darkroom.annotation.label_studio.protocol import ChangedTask, Person, TaskListing
from darkroom.annotation.recordings.format import RecordedTask, Recording
from darkroom.annotation.rounds.campaign import Campaign, annotation_digest
from darkroom.annotation.rounds.image_pool import POOL, reject_item, require_size
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import TaskRequest
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.annotation.rounds.sync import Say, Sync
from darkroom.annotation.rounds.tables import RECORDED, AnnotationStages
from darkroom.pipelines.records import PoolImage, Reject
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageMissing
from darkroom.pipelines.storage.media_validation import LARGEST_PIXELS, probe
from darkroom.pipelines.storage.stage_runs import Outcome, StageReport, run_stage
from darkroom.pipelines.storage.workspace import Workspace

RECORDED_POOL = replace(POOL, partition=RECORDED)
_FIRST_UNRECORDED = 2**48
"""Tasks that the recording does not have get numbers from here on."""


class RecordedJournal(Journal):
    """Keys tasks as recordings do, by what they ask for."""

    seed = 0

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        super().__init__(folder)
        self._campaign = campaign

    def _new_key(self, request: TaskRequest) -> str:
        return request.key(self._campaign.name)


@dataclass(frozen=True, slots=True)
class RecordedCampaign:
    """One recording in one workspace."""

    workspace: Workspace
    recording: Recording

    @property
    def campaign(self) -> Campaign:
        return self.recording.campaign

    def materialize_pool(self) -> StageReport:
        """The images that the workspace has; a missing or different one is a typed reject."""
        rows: list[PoolImage] = []
        rejects: list[Reject] = []
        for item in self.recording.images:
            try:
                self._check(item)
            except RowError as error:
                rejects.append(reject_item(item, error, stage=POOL.asset[0]))
            else:
                rows.append(item)
        images = [[item.image.sha256 for item in rows], [reject.evidence for reject in rejects]]
        inputs = digest(["recorded_pool", self.recording.digest, images, annotation_digest()])
        outcome = Outcome(rows, rejects, len(self.recording.images))
        return run_stage(self.workspace.tables, RECORDED_POOL, PoolImage, inputs=inputs, perform=lambda: outcome)

    def replay(self, journal: RecordedJournal, *, say: Say = print) -> None:
        """Sync until nothing new arrives. Raises ``TableMissing`` without its pool."""
        pool = self.workspace.tables.read(RECORDED_POOL, PoolImage)
        imported = journal.task_ids([task.key for task in self.recording.tasks])
        server = RecordedServer(self.recording, handed_out=imported.values())
        terms = {task.key: task.terms for task in self.recording.tasks}
        sync = Sync(journal, server, self.campaign, say=say, recorded_terms=terms)
        while sync.run(pool) or not server.is_exhausted:
            pass

    @contextmanager
    def stages(self, *, say: Say = print) -> Iterator[AnnotationStages]:
        with RecordedJournal(self.workspace.annotation / RECORDED / self.campaign.name, self.campaign) as journal:
            self.replay(journal, say=say)
            annotators = self.recording.annotators
            yield AnnotationStages(self.workspace, self.campaign, journal, self._place_of, RECORDED, annotators)

    def _place_of(self, _: int, task: int) -> str:
        return f"task {task} in the recording of {self.campaign.name}"

    def _check(self, item: PoolImage) -> None:
        image = item.image
        try:
            stored = probe(self.workspace.images.read(image), max_pixels=LARGEST_PIXELS).image
        except ImageMissing as error:
            raise RowError(Reason.MISSING_IMAGE, f"{image.sha256} is not in this workspace: {error}") from error
        if (stored.width, stored.height) != (image.width, image.height):
            evidence = f"recorded as {image.width}x{image.height}; it has {stored.width}x{stored.height} pixels"
            raise RowError(Reason.FOREIGN_FRAME, evidence)
        require_size(image, self.campaign)


class RecordedServer:
    """A recording as a ``TaskServer``; tasks that it does not have are accepted and stay without submissions."""

    def __init__(self, recording: Recording, *, handed_out: Iterable[int] = ()) -> None:
        self.url = f"recording of {recording.campaign.name}"
        self._recording = recording
        self._id_of = {task.key: task.id for task in recording.tasks}
        self._handed_out = set(handed_out)
        self._n_served: Counter[int] = Counter()

    @property
    def is_exhausted(self) -> bool:
        """Every submission to a task that was handed out has been returned."""
        return all(self._n_served[task.id] == len(task.states) for task in self._open_tasks())

    def people(self) -> list[Person]:
        return list(self._recording.people)

    def blocked_submissions(self, after: int) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self._recording.hits[after:]]

    def create_project(self, campaign: str, round: str, *, n_excluded: int, guide: str = "") -> int:
        """Number the projects by round: recorded ones may be of several servers."""
        return ROUNDS.index(round) + 1

    def check_project(self, project_id: int, round: str, *, guide: str = "") -> bool:
        return True

    def _change_nothing(self, *_: object, **__: object) -> None:
        pass

    open_to = reset_form = set_overlaps = delete_task = _change_nothing

    def unheld_locks(self, project_id: int, *, release: bool) -> list[int]:
        return []

    def withdraw(self, task_ids: Sequence[int]) -> list[int]:
        return []

    def n_tasks(self, project_id: int) -> int:
        """All that were handed out; nothing gets lost."""
        return len(self._handed_out)

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        keys = [str(task["data"]["key"]) for task in tasks]
        numbers = [self._id_of.get(key, _FIRST_UNRECORDED + int(key[:11], 16)) for key in keys]
        self._handed_out.update(numbers)
        return numbers

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[TaskListing]:
        """None: an interrupted import is repeated, with the same numbers."""
        return iter(())

    def now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC)

    def changed_since(
        self, project_id: int, watermark: str, *, n_excluded: int, last_annotation: int = 0
    ) -> Iterator[ChangedTask]:
        """The next state of every open task of the project that has one."""
        for task in self._open_tasks():
            if task.round == ROUNDS[project_id - 1] and self._n_served[task.id] < len(task.states):
                self._n_served[task.id] += 1
                yield ChangedTask(task.id, task.states[self._n_served[task.id] - 1], task.roles)

    def _open_tasks(self) -> Iterator[RecordedTask]:
        return (task for task in self._recording.tasks if task.id in self._handed_out)
