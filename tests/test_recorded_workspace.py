"""Workspaces of earlier versions, opened by this one: nothing that was paid or submitted is asked again.

``tests/recorded_workspace/README.md`` says what it holds. Digests of code have changed since, so every stage runs again
there; the ledger has its acts.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Features, List, load_dataset

from darkroom import sandbox
from darkroom.annotation.label_studio.protocol import ChangedTask, Person, TaskListing
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import ACCEPTED, ANNOTATIONS, CROSS_CHECKS, AnnotationStages
from darkroom.pipelines.generation.engine import STAGES, Family
from darkroom.pipelines.generation.funnel import funnel_of
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.inspection.explain import explain
from darkroom.pipelines.inspection.gallery import read_rejects
from darkroom.pipelines.models.policies import Completion, CompletionRequest, PolicyIdentity
from darkroom.pipelines.publishing.dataset_reader import read_rows
from darkroom.pipelines.publishing.features import PROMPTS, TRAJECTORIES, arrow_schema
from darkroom.pipelines.publishing.rl_dataset import RlDataset
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import (
    Annotated,
    CheckedLabel,
    Draft,
    PassRate,
    PoolImage,
    Reject,
    RLCandidate,
    RLRow,
    Sample,
    SuitabilityLabel,
    SuitabilityVotes,
    ToolNecessity,
    Trajectory,
    to_row,
)
from darkroom.pipelines.records.schemas import schema_of
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.storage.stage_runs import StageReport, report
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.rl.rollouts.prompts import open_prompts, question_of
from tests.annotation.desk import accepts
from tests.annotation.memory_studio import OpenStudio

ARCHIVES = Path(__file__).parent / "recorded_workspace"
PARTITION = "recorded-0000"
KINDS: dict[type[Any], str] = {
    Sample: "samples",
    Draft: "crop/drafts",
    Trajectory: "crop/trajectories",
    Reject: "crop/rejects",
    RLCandidate: "rl_candidates",
    CheckedLabel: "checked_labels",
    PassRate: "pass_rates",
    ToolNecessity: "tool_necessity",
    SuitabilityVotes: "suitability_votes",
    SuitabilityLabel: "suitability_labels",
    RLRow: "rl_dataset",
    PoolImage: "annotation_pool",
    Annotated: "accepted_annotations",
}
ADDED = {
    "before_rooms": {"annotation_pool": ("view",), "rl/prompts": ("visual_search", "accepted")},
    "before_one_name": {"rl/prompts": ("accepted",)},
}
"""Columns that tables and datasets of later versions have, by recording, asset and folder."""
OF_PARTS = frozenset({"parent", "made_by"})
"""Fields of a video that later versions have: the film of which it is a part, and how it was cut."""


def without_parts(kind: pa.DataType) -> pa.DataType:
    """A type as it was before videos had ``OF_PARTS``."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_parts(kind.value_type)))
    if not pa.types.is_struct(kind):
        return kind
    is_video = kind.get_field_index("n_frames") >= 0
    kept = [field for field in kind if not (is_video and field.name in OF_PARTS)]
    return pa.struct([field.with_type(without_parts(field.type)) for field in kept])


@pytest.fixture(params=sorted(ADDED))
def recording(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def added(recording: str) -> dict[str, tuple[str, ...]]:
    return ADDED[recording]


class Paid:
    """The policy that was paid; it is not there any more."""

    concurrency = 2

    def __init__(self, name: str) -> None:
        self.identity = PolicyIdentity(name, f"{name}-model")

    async def check(self) -> None:
        pass

    async def write(self, turn: CompletionRequest) -> Completion:
        raise AssertionError(f"{self.identity.policy} is asked again: {turn.task.family}, seed {turn.seed}")

    async def close(self) -> None:
        pass


@pytest.fixture
def recorded(recording: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace, on the machine that recorded it: the sandbox's digest names the machine's libraries."""
    with tarfile.open(ARCHIVES / f"{recording}.tar.xz") as archive:
        archive.extractall(workspace.home, filter="data")
    digest = facts_of(workspace)["sandbox_digest"]
    monkeypatch.setattr(sandbox, "sandbox_digest", lambda *_, **__: digest)
    return workspace


def facts_of(workspace: Workspace) -> dict[str, Any]:
    return json.loads((workspace.home / "recording.json").read_text())


def n_acts(workspace: Workspace) -> dict[str, int]:
    return {kind: total.calls for kind, total in workspace.ledger.totals().items()}


def pages(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def family_reports(workspace: Workspace, name: str) -> list[StageReport]:
    family = Family(workspace, load_recipes()[name], PARTITION)
    return [
        family.draft(Paid("writer")),
        family.run(Paid("writer")),
        family.check(Paid("judge"), n_votes=3),
        family.keep(),
        family.collect_rejects(),
    ]


def family_rows(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    """The rows of a family's stages. Of the checks whether all passed: later versions have more and other ones, write
    what was measured of the image (``visibility``) into the hint, and say in other words why a row is not for a family.
    """
    keys = [TableKey((name, stage), PARTITION) for stage in STAGES]
    rows = [row for key in keys for row in pq.read_table(workspace.tables.path(key)).to_pylist()]
    rows += [to_row(reject) for key in keys for reject in workspace.tables.read_rejects(key)]
    for row in rows:
        if "checks" in row:
            row["checks"] = all(check["passed"] for check in row["checks"])
        if row.get("disposition") == "not_applicable":
            del row["evidence"]
        if "hint" in row:
            row["hint"] = {name: fact for name, fact in json.loads(row["hint"]).items() if name != "visibility"}
    return rows


@pytest.mark.parametrize("name", ["crop", "direct"])
def test_a_familys_tables_are_made_again_from_its_paid_acts(recorded, name):
    before = family_rows(recorded, name)
    reports = family_reports(recorded, name)
    assert [report.performed for report in reports] == [0] * 5
    assert family_rows(recorded, name) == before, "the rows have changed"
    assert n_acts(recorded) == facts_of(recorded)["acts"]
    assert all(report.reused for report in family_reports(recorded, name))


def test_rows_that_are_not_applicable_were_rejects_and_are_counted_apart(recorded):
    drafts = TableKey(("crop", "drafts"), PARTITION)
    n_stored = pq.read_metadata(recorded.tables.rejects_path(drafts)).num_rows
    stored = pq.read_table(recorded.tables.rejects_path(drafts)).column("disposition").to_pylist()
    assert set(stored) == {"rejected"}
    assert {reject.disposition for reject in recorded.tables.read_rejects(drafts)} == {"not_applicable"}
    counts = report(recorded.tables, drafts)
    assert (counts.n_rejected, counts.n_not_applicable) == (0, n_stored)
    assert counts.n_in == counts.n_out + n_stored
    funnel = funnel_of(recorded.tables, "crop", [PARTITION])
    assert funnel.n_not_applicable == n_stored
    assert [(step.n_out, step.reasons) for step in funnel.steps[1:]] == [(2, {})] * 4
    shown = read_rejects(recorded, ["crop"])
    assert [reject.disposition for reject, _ in shown.rows] == ["not_applicable"] * n_stored
    sample = recorded.tables.read_rejects(drafts)[0].sample_id
    (history,) = (way for way in explain(recorded, sample).histories if way.family == "crop")
    assert [passage.outcome for passage in history.passages] == ["not_applicable"]
    family_reports(recorded, "crop")
    rejects = report(recorded.tables, TableKey(("crop", "rejects"), PARTITION))
    assert (rejects.n_in, rejects.n_out, rejects.n_not_applicable) == (n_stored, 0, n_stored)


def rl_reports(workspace: Workspace) -> list[StageReport]:
    shard = Shard(workspace, PARTITION)
    judge, student = Paid("judge"), Paid("student")
    sandboxes = Sandboxes(workspace.images, workspace.ledger)
    stages: Sequence[Any] = (
        Candidates(judge=judge),
        CheckedLabels(judge=judge, n_answers=2),
        PassRates(student=student, n_answers=4),
        ToolNecessities(student=student, sandboxes=sandboxes, n_forced=1, n_forbidden=1),
        Suitability(judge=judge, n_votes=3),
        SuitabilityLabels(),
    )
    return [shard.materialize(stage) for stage in stages]


def test_the_rl_tables_are_made_again_from_their_paid_acts(recorded):
    keys = [path.parent.name for path in recorded.tables.root.glob(f"*/{PARTITION}.parquet")]
    before = {asset: recorded.tables.fingerprint(TableKey((asset,), PARTITION)) for asset in keys}
    reports = rl_reports(recorded)
    assert {report.key.asset[0] for report in reports} <= set(keys)
    assert [report.performed for report in reports] == [0] * 6
    assert {asset: recorded.tables.fingerprint(TableKey((asset,), PARTITION)) for asset in keys} == before
    assert n_acts(recorded) == facts_of(recorded)["acts"]
    assert all(report.reused for report in rl_reports(recorded))


def test_tables_and_rejects_are_read(recorded):
    assert len(recorded.tables.read(TableKey(("crop", "trajectories"), PARTITION), Trajectory)) == 2
    assert len(recorded.tables.read(TableKey(("crop", "rejects"), PARTITION), Reject)) == 3
    assert len(recorded.tables.read(TableKey(("rl_dataset",), "all"), RLRow)) == 5


def test_shipped_datasets_are_read(recorded):
    assert [row["family"] for row in read_rows([recorded.dataset("sft", "crop")])] == ["crop"] * 2
    file = str(next(recorded.dataset("rl", "prompts").glob("*.parquet")))
    rows = load_dataset("parquet", data_files=[file], split="train", cache_dir=str(recorded.home / "cache"))
    assert (len(rows), rows[0]["images"][0].size) == (5, (320, 240))


def test_schemas_are_those_that_have_shipped(recorded, added):
    for kind, asset in KINDS.items():
        (file,) = (path for path in (recorded.home / "tables" / asset).glob("*.parquet") if "rejects" not in path.name)
        today = schema_of(kind)
        for name in added.get(asset, ()):
            today = today.remove(today.get_field_index(name))
        today = pa.schema([field.with_type(without_parts(field.type)) for field in today], today.metadata)
        assert pq.read_schema(file).equals(today), asset
        if asset in added:
            rows = recorded.tables.read(TableKey((asset,), "all"), kind)
            assert {getattr(row, name) for row in rows for name in added[asset]} == {None}, "they are read as before"
    for features, folder in ((TRAJECTORIES, "sft/crop"), (PROMPTS, "rl/prompts")):
        (file,) = (recorded.home / "datasets" / folder).glob("*.parquet")
        known = Features({name: feature for name, feature in features.items() if name not in added.get(folder, ())})
        videos = known["video_refs"].feature
        known["video_refs"] = List({name: kind for name, kind in videos.items() if name not in OF_PARTS})
        shipped, today = pq.read_schema(file), arrow_schema(known)
        assert shipped.equals(today), folder
        assert shipped.metadata == today.metadata, folder


@pytest.mark.parametrize("recording", ["before_rooms"])
def test_prompts_from_before_a_column_train_as_they_did(recorded):
    rows = open_prompts(recorded.dataset("rl", "prompts"))
    assert set(rows["visual_search"]) == {None}
    by_image: dict[bool, set[bool | None]] = {True: set(), False: set()}
    for row in rows:
        question = question_of(row)
        by_image[bool(question.sample.images)].add(question.visual_search)
    assert by_image == {True: {True, None}, False: {False}}, "by boxes and images; None is judged as before"


def test_datasets_that_are_shipped_again_have_the_same_files_and_rows(recorded, added):
    """But for columns that were added. Their bytes are others: files have a page index now."""
    before = pages(recorded.home / "datasets")
    tables = {name: pq.read_table(io.BytesIO(data)) for name, data in before.items()}
    SftDataset(recorded, load_recipes()["crop"], [PARTITION]).publish()
    RlDataset(recorded, [PARTITION], [], Screening(recorded), validation_share=0.0).publish()
    after = pages(recorded.home / "datasets")
    assert after.keys() == before.keys()
    for name, data in after.items():
        table = pq.read_table(io.BytesIO(data))
        assert table["video_refs"].to_pylist() == tables[name]["video_refs"].to_pylist() == [[]] * len(table)
        new = ("video_refs", *added.get(str(Path(name).parent), ()))
        assert table.drop_columns(list(new)).equals(tables[name].drop_columns("video_refs")), name


@dataclass
class Studio(OpenStudio):
    """The server as the recording left it: tasks by number, with their project and key."""

    tasks: dict[int, tuple[int, str]]
    annotations: dict[int, list[Mapping[str, Any]]]

    def people(self) -> list[Person]:
        return [
            Person(1, "admin@example.com", "admin", "admin"),
            Person(2, "ann@example.com", "Ann", "annotator"),
            Person(3, "bob@example.com", "Bob", "annotator"),
            Person(5, "eve@example.com", "Eve", "expert"),
        ]

    def create_project(self, campaign: str, round: str, *, n_excluded: int, language: str = "en") -> int:
        raise AssertionError(f"the project of the round {round} is there")

    def check_project(self, project_id: int, round: str, **more: Any) -> bool:
        return True

    def listed(self, project_id: int) -> list[TaskListing]:
        tasks = ((number, key) for number, (project, key) in self.tasks.items() if project == project_id)
        return [TaskListing(number, key, len(self.annotations.get(number, ()))) for number, key in tasks]

    def changed_since(self, project_id: int, watermark: str, **more: Any) -> Iterator[ChangedTask]:
        changed = (number for number in self.annotations if self.tasks[number][0] == project_id)
        return (ChangedTask(number, self.annotations[number]) for number in changed)

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        first = len(self.tasks) + 1
        keys = {key for _, key in self.tasks.values()}
        for number, task in enumerate(tasks, first):
            assert task["data"]["key"] not in keys, "a task is handed out a second time"
            self.tasks[number] = (project_id, task["data"]["key"])
        return list(range(first, first + len(tasks)))

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        pass

    def delete_task(self, task_id: int) -> None:
        raise AssertionError("no task is taken away")


@pytest.fixture
def studio(recorded: Workspace) -> Studio:
    server = facts_of(recorded)["server"]
    tasks = {int(number): (project, key) for number, (project, key) in server["tasks"].items()}
    # a task of which an author's seat is all that there is is not listed as changed
    written = {int(n): all_of for n, all_of in server["annotations"].items() if any(raw["lead_time"] for raw in all_of)}
    return Studio(tasks, written)


def test_a_running_campaign_resumes_without_a_task_or_a_submission_twice(recorded, studio):
    campaign, pool = Campaign.load(recorded.annotation), recorded.tables.read(POOL, PoolImage)
    with Journal(recorded.annotation) as journal:
        sync = Sync(journal, studio, campaign, say=lambda text: None)
        before = journal.last_version
        assert (sync.run(pool), journal.last_version) == ({}, before)
        task = max(number for number, (project, _) in studio.tasks.items() if ROUNDS[project - 1] == "cross_check")
        studio.annotations[task] = [*studio.annotations.get(task, ()), cross_check(studio)]
        assert sync.run(pool) == {"accept": 1}


def test_annotation_tables_are_made_again_with_the_same_rows(recorded):
    keys = (ANNOTATIONS, CROSS_CHECKS, ACCEPTED)
    before = [recorded.tables.fingerprint(key) for key in keys]
    with Journal(recorded.annotation) as journal:
        campaign = Campaign.load(recorded.annotation)
        stages = AnnotationStages(recorded, campaign, journal, lambda project, task: f"http://studio/{project}/{task}")
        reports = stages.materialize(stages.read())
    assert [reports[key].n_out for key in keys] == [2, 1, 1]
    assert [recorded.tables.fingerprint(key) for key in keys] == before


def cross_check(studio: Studio) -> dict[str, Any]:
    first = next(iter(studio.annotations.values()))[0]
    return {**first, "id": 90, "completed_by": 3, "updated_by": 3, "result": accepts()}
