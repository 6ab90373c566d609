"""A campaign goes into a file without names, and comes out of it with the same records, refusals and history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.annotation import AnnotationError
from darkroom.annotation.recordings.campaign_import import RECORDED_POOL, RecordedCampaign
from darkroom.annotation.recordings.format import BUNDLED, Recording, read_recording, record, write_recording
from darkroom.annotation.rounds.accepted_source import read_accepted
from darkroom.annotation.rounds.campaign import CATEGORY_NAMES, Campaign, Terms, terms_of
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.annotation.rounds.tables import ACCEPTED, AnnotationStages
from darkroom.pipelines.demo.images.charts import charts
from darkroom.pipelines.demo.images.scenes import scenes
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import (
    ANN,
    BOB,
    CEM,
    EVE,
    FAY,
    GUS,
    PEOPLE,
    SIZE,
    Desk,
    accepts,
    box,
    fixes,
    record as written,
    rejects,
    text,
)
from tests.image_files import encoded
from tests.matrices import first_quickly

CAMPAIGN = Campaign(name="test")
Take = Callable[[Recording], list[RecordState]]


def large_image() -> bytes:
    return encoded(Image.new("L", SIZE, 90), "JPEG")


@pytest.fixture
def item(workspace: Workspace) -> PoolImage:
    return PoolImage(workspace.images.ingest(large_image()), "ours", "a.jpg", "CC0-1.0")


@pytest.fixture
def played(tmp_path: Path, item: PoolImage) -> Desk:
    """Written, rejected, reworked, fixed, accepted; handed in twice and changed too late on the way."""
    desk = Desk(tmp_path / "elsewhere", item=item.image.sha256, size=SIZE)
    first = desk.hand_out()
    ours = desk.submit(first, ANN, written("41"))
    desk.submit(first, BOB, written("40"))
    desk.submit(desk.hand_out(), CEM, [*rejects("ambiguous"), text("comment", "which sign?")])
    desk.edit(first, ours, result=written("39"))
    desk.submit(desk.hand_out(), ANN, written("41"))
    desk.submit(desk.hand_out(), BOB, fixes("42"))
    desk.submit(desk.hand_out(), EVE, accepts())
    return desk


@pytest.fixture
def recording(played: Desk, item: PoolImage) -> Recording:
    return record(played.journal, CAMPAIGN, [item], note="")


@pytest.fixture
def take(workspace: Workspace) -> Take:
    """Takes a recording in and gives the states that its rounds came to."""

    def _take(found: Recording) -> list[RecordState]:
        campaign = RecordedCampaign(workspace, found)
        campaign.materialize_pool()
        with campaign.stages(say=lambda text: None) as stages:
            reading = stages.read()
            stages.materialize(reading)
        return [kept.state for kept in reading.records]

    return _take


def content(state: RecordState) -> Any:
    """All that came of a record, but for people's addresses."""
    events = [(one.round, one.attempt, one.verdict, one.reasons, one.comment, one.changes) for one in state.history]
    return state.stage, state.fields, events, [(one.reason, one.annotation_id) for one in state.invalid]


def edited(recording: Recording, place: int, **changed: Any) -> Recording:
    """With the last annotation of one task changed."""
    parts = recording.model_dump(mode="json")
    parts["tasks"][place]["annotations"][-1] |= changed
    return Recording.model_validate(parts)


def test_what_comes_out_of_a_file_is_what_the_campaign_came_to(
    played: Desk, recording: Recording, take: Take, tmp_path: Path
) -> None:
    write_recording(recording, tmp_path / "out.json")
    [state] = take(read_recording(tmp_path / "out.json"))
    assert content(state) == content(played.state())
    assert state.stage == "accepted"
    assert {one.reason for one in state.invalid} == {"duplicate_submission", "late_edit"}


def test_verdicts_of_several_experts_come_out_as_they_went_in(item: PoolImage, take: Take, tmp_path: Path) -> None:
    """Under the terms of the time, which are not today's: two of three reject, then one changes too late."""
    terms = terms_of(CAMPAIGN, "accept")
    desk = Desk(tmp_path / "elsewhere", item=item.image.sha256, size=SIZE, terms=terms)
    desk.submit(desk.hand_out(), ANN, written("42"))
    desk.submit(desk.hand_out(), BOB, accepts())
    desk.terms = terms._replace(experts_per_record=3)
    task = desk.hand_out()
    numbers = [desk.submit(task, person, rejects("ambiguous")) for person in (EVE, FAY)]
    desk.submit(task, GUS, accepts())
    desk.hand_out()
    desk.edit(task, numbers[1], result=accepts())
    recording = record(desk.journal, CAMPAIGN, [item], note="")
    write_recording(recording, tmp_path / "out.json")
    [state] = take(read_recording(tmp_path / "out.json"))
    assert (state.round, state.attempt, len(state.history)) == ("rework", 1, 5)
    assert content(state) == content(desk.state())


def test_a_recording_of_the_version_before_several_experts_asks_one(recording: Recording, take: Take) -> None:
    parts = recording.model_dump(mode="json")
    terms = list(terms_of(CAMPAIGN, "accept"))
    for task in parts["tasks"]:
        task["terms"] = terms[: Terms._fields.index("experts_per_record")]
    [state] = take(Recording.model_validate(parts))
    assert state.stage == "accepted"


def test_nobody_is_named(played: Desk, recording: Recording, tmp_path: Path) -> None:
    played.journal.add_blocked(0, [{"person": "ann@example.com", "task_id": 1, "problems": ["too large"], "at": ""}])
    write_recording(record(played.journal, CAMPAIGN, [*recording.images], note=""), tmp_path / "out.json")
    said = (tmp_path / "out.json").read_text()
    for person in PEOPLE:
        assert person.email not in said
        assert person.role == "admin" or person.name not in said
    assert f'"person{ANN}@example.org"' in said


def test_taking_in_again_adds_nothing(recording: Recording, take: Take, workspace: Workspace) -> None:
    take(recording)
    path = workspace.annotation / "recorded" / "test"
    with Journal(path) as journal:
        before = journal.fingerprint
    take(recording)
    with Journal(path) as journal:
        assert journal.fingerprint == before


@pytest.mark.parametrize("act", ["request", "add_tasks", "set_ready", "add_versions", "set_synced"])
@pytest.mark.parametrize("n_before", first_quickly([2, 0, 4]))
def test_killed_anywhere_it_goes_on_where_it_was(
    act: str, n_before: int, recording: Recording, take: Take, played: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, left = getattr(Journal, act), n_before

    def die(self: Journal, *given: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return done(self, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, act, die)
        with pytest.raises(KeyboardInterrupt):
            take(recording)
    [state] = take(recording)
    assert content(state) == content(played.state())


def test_a_submission_that_somebody_signed_for_another_is_refused(recording: Recording, take: Take) -> None:
    place = next(n for n, task in enumerate(recording.tasks) if task.round == "accept")
    [state] = take(edited(recording, place, updated_by=BOB))
    assert state.stage == "waiting"
    assert "forged_submission" in {one.reason for one in state.invalid}


def test_a_box_over_the_limit_is_refused_though_the_file_says_accepted(recording: Recording, take: Take) -> None:
    large = [box(width=50, height=50) if one["from_name"] == "box" else one for one in written("42")]
    place = next(n for n, task in enumerate(recording.tasks) if task.round == "rework")
    [state] = take(edited(recording, place, result=large))
    assert state.stage != "accepted"
    assert "breaks_rules" in {one.reason for one in state.invalid}


def test_an_unknown_signature_is_refused(recording: Recording, take: Take) -> None:
    place = next(n for n, task in enumerate(recording.tasks) if task.round == "accept")
    [state] = take(edited(recording, place, completed_by=99, updated_by=None))
    assert "wrong_person" in {one.reason for one in state.invalid}


def test_an_image_that_is_not_here_is_set_aside(recording: Recording, take: Take, workspace: Workspace) -> None:
    absent = PoolImage(ImageRef("f" * 64, *SIZE, "RGB", "JPEG"), "ours", "b.jpg", "CC0-1.0")
    states = take(recording.model_copy(update={"images": (*recording.images, absent)}))
    assert [state.stage for state in states] == ["accepted"]
    [missing] = workspace.tables.read_rejects(RECORDED_POOL)
    assert (missing.reason, missing.source_row, missing.disposition) == ("missing_image", "b.jpg", "quarantined")


def test_an_image_of_another_size_is_set_aside(recording: Recording, take: Take, workspace: Workspace) -> None:
    parts = recording.model_dump(mode="json")
    parts["images"][0]["image"]["width"] += 1
    assert take(Recording.model_validate(parts)) == []
    assert [one.reason for one in workspace.tables.read_rejects(RECORDED_POOL)] == ["foreign_frame"]


def test_an_image_that_came_later_is_found(recording: Recording, take: Take, tmp_path: Path) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path / "other")}) as other:
        campaign = RecordedCampaign(other, recording)
        assert campaign.materialize_pool().n_out == 0
        other.images.ingest(large_image())
        assert campaign.materialize_pool().n_out == 1


def test_a_campaign_in_the_same_workspace_keeps_its_tables_and_comes_first(
    recording: Recording, take: Take, workspace: Workspace, item: PoolImage
) -> None:
    take(recording)
    assert [sample.source for sample in read_accepted(workspace).samples] == ["annotation/test"]
    counts = {"n_in": 1, "n_out": 1, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0}
    workspace.tables.write(POOL, PoolImage, [item], [], inputs="", facts={**counts, "reasons": {}, "usage": {}})
    desk = Desk(workspace.annotation, item=item.image.sha256)
    desk.submit(desk.hand_out(), BOB, written("43"))
    desk.submit(desk.hand_out(), ANN, accepts())
    desk.submit(desk.hand_out(), EVE, accepts())
    stages = AnnotationStages(workspace, Campaign(name="ours"), desk.journal, lambda project, task: "")
    stages.materialize(stages.read())
    assert [(sample.source, sample.answer) for sample in read_accepted(workspace).samples] == [
        ("annotation/ours", "43")
    ]
    assert workspace.tables.n_rows(TableKey(ACCEPTED.asset, "recorded")) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ('{"format": "darkroom annotations 2"}', "format: Input should be"),
        ('{"hits": [{"at": NaN}]}', "NaN is no number"),
    ],
)
def test_a_file_that_is_none_says_where(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(AnnotationError, match=said):
        read_recording(tmp_path / "x.json")


def test_the_bundled_recording_is_about_images_that_the_demo_makes() -> None:
    recorded = {item.source_row: item.image.sha256 for item in read_recording(BUNDLED).images}
    assert len(recorded) == 29
    recorded_here = ("scene/02", "chart/02", "chart/03", "chart/04")
    for lazy in (lazy for lazy in (*scenes(24, 0), *charts(0)) if lazy.name in recorded_here):
        (data,) = lazy.build().images
        assert isinstance(data, bytes)
        assert recorded[lazy.name] == digest_bytes(data)


def test_the_bundled_recording_holds_what_a_campaign_has(tmp_path: Path) -> None:
    """Its images are taken as there: that they are is the demo's to show."""
    from darkroom.annotation.recordings.campaign_import import RecordedJournal, RecordedServer
    from darkroom.annotation.rounds.sync import Sync, record_states

    bundled = read_recording(BUNDLED)
    with RecordedJournal(tmp_path / "journal", bundled.campaign) as journal:
        server = RecordedServer(bundled)
        sync = Sync(journal, server, bundled.campaign, say=lambda text: None)
        while sync.run(bundled.images) or not server.is_exhausted:
            pass
        found = [state for _, _, state in record_states(bundled.images, journal, bundled.campaign)]
        assert journal.blocked_submissions()
    accepted = [state for state in found if state.stage == "accepted"]
    assert len(accepted) >= 24
    assert {state.fields.category for state in accepted if state.fields} == set(CATEGORY_NAMES)
    verdicts = [(event.round, event.verdict) for state in accepted for event in state.history]
    assert verdicts.count(("cross_check", "fix")) >= 3
    assert ("accept", "reject") in verdicts
    assert max(state.attempt for state in accepted) == 1
    assert {one.reason for state in found for one in state.invalid} == {"duplicate_submission", "late_edit"}
    assert any(state.planted_checks for state in accepted)
    assert [state.stage for state in found].count("rejected") == 1


def test_a_recording_is_one_line_a_task(recording: Recording, tmp_path: Path) -> None:
    write_recording(recording, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["campaign"]["name"] == "test"
    assert sum('"data":{"key"' in line for line in (tmp_path / "out.json").read_text().splitlines()) == 5
