"""A policy's record for a random part of the images: which part, what it is served, and what the journal keeps."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation._plugin.darkroom_studio.validation import without_key
from darkroom.annotation.rounds.campaign import Campaign, is_selected
from darkroom.annotation.rounds.image_pool import POOL as POOL_TABLE
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import PRE_ANNOTATED
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState
from darkroom.annotation.rounds.sync import Sync, preview_sync, record_states
from darkroom.annotation.rounds.tables import AnnotationStages
from darkroom.pipelines.records import ImageRef, PoolImage, PreAnnotation, Usage
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, SIZE, accepts, record
from tests.annotation.memory_studio import MemoryStudio, Task

IMAGES = sorted(hashlib.sha256(str(n).encode()).hexdigest() for n in range(60))
POOL = [PoolImage(ImageRef(image, *SIZE, "RGB", "JPEG"), "ours", image, "CC0-1.0") for image in IMAGES]
DRAFT = {"model_version": "pre-annotation by seer", "result": record("17")}
HALF = Campaign(name="c", gold_share=0, seed=2026, pre_annotated_share=0.5)


class Play:
    """A campaign and its server; the policy wrote a record for all images but the last ten."""

    def __init__(self, folder: Path, campaign: Campaign = HALF, *, n_drafted: int = 50) -> None:
        self.studio, self.journal, self.campaign = MemoryStudio(), Journal(folder), campaign
        self.drafts = dict.fromkeys(IMAGES[:n_drafted], DRAFT)
        self.sync()

    def sync(self) -> None:
        Sync(self.journal, self.studio, self.campaign, self.drafts, say=lambda text: None).run(POOL)

    def tasks(self, round: str = "annotate") -> Iterator[tuple[str, int, Task]]:
        for number, task in self.studio.tasks.items():
            if self.studio.projects[task.project][0] == round:
                yield task.data["image"].rpartition("/")[2], number, task

    def submit(self, round: str, person: int, result: list[dict[str, Any]]) -> None:
        for _, number, _ in list(self.tasks(round)):
            self.studio.submit(number, person, result)
        self.sync()

    @property
    def filled(self) -> set[str]:
        return {image for image, _, task in self.tasks() if task.predictions}

    @property
    def states(self) -> dict[str, RecordState]:
        return {found.item.image.sha256: found.state for found in record_states(POOL, self.journal, self.campaign)}


@pytest.fixture
def half(tmp_path: Path) -> Play:
    return Play(tmp_path)


def test_the_seed_gives_half_of_the_images_the_policys_record(half: Play) -> None:
    assert half.filled == {i for i in IMAGES[:50] if is_selected(0.5, "pre-annotated", i, seed=2026)}
    assert 15 < len(half.filled) < 35


def test_a_campaign_without_the_setting_gives_it_to_all(tmp_path: Path) -> None:
    play = Play(tmp_path, HALF.model_copy(update={"pre_annotated_share": Campaign().pre_annotated_share}))
    assert play.filled == set(IMAGES[:50])
    assert {state.pre_annotation for state in play.states.values()} == {"all", ""}


def test_a_withheld_record_leaves_no_trace_in_its_task(half: Play, tmp_path: Path) -> None:
    """It is the task of an image without one, but for the random key."""
    bare = Play(tmp_path / "bare", n_drafted=0)
    without = {image: task for image, _, task in bare.tasks()}
    for image, number, task in half.tasks():
        if image not in half.filled:
            other = without[image]
            assert {**task.data, "key": ""} == {**other.data, "key": ""}
            assert (task.overlap, task.annotations, task.predictions) == (other.overlap, [], ())
            assert number == next(n for of, n, _ in bare.tasks() if of == image)
        else:
            assert PRE_ANNOTATED in task.data["rules"]


def test_checkers_and_experts_get_the_same_whoever_had_help(half: Play) -> None:
    half.submit("annotate", ANN, record())
    half.submit("cross_check", BOB, accepts())
    for round in ("cross_check", "accept"):
        served = {True: set[str](), False: set[str]()}
        for image, _, task in half.tasks(round):
            data = {**without_key({"data": task.data})["data"], "image": ""}
            seats = [raw["completed_by"] for raw in task.annotations if raw["lead_time"] is None]
            served[image in half.filled].add(repr((data, task.predictions, task.overlap, seats)))
        assert len(served[True] | served[False]) == 1, "no two differ"


def test_without_the_campaigns_secret_nobody_can_compute_the_part(tmp_path: Path) -> None:
    play = Play(tmp_path, HALF.model_copy(update={"seed": 0}))
    assert play.filled == {i for i in IMAGES[:50] if is_selected(0.5, "pre-annotated", i, seed=play.journal.seed)}
    assert play.filled != {i for i in IMAGES[:50] if is_selected(0.5, "pre-annotated", i)}


def test_the_journal_keeps_the_part_whatever_the_campaign_says_later(half: Play) -> None:
    filled = half.filled
    half.submit("annotate", ANN, record())
    half.campaign = half.campaign.model_copy(update={"pre_annotated_share": 1, "seed": 1})
    half.drafts = {}
    half.sync()
    assert {i for i, state in half.states.items() if state.pre_annotation == "shown"} == filled
    assert {i for i, state in half.states.items() if state.pre_annotation == ""} == set(IMAGES[50:])
    half.submit("cross_check", BOB, accepts())
    half.submit("accept", EVE, accepts())
    assert {i for i, state in half.states.items() if state.pre_annotation == "shown"} == filled


def test_a_task_that_is_handed_out_again_is_of_the_same_part(half: Play) -> None:
    filled = half.filled
    half.journal.retire_tasks(half.studio.tasks)
    half.studio.tasks.clear()
    half.campaign = half.campaign.model_copy(update={"pre_annotated_share": 0.9})
    half.sync()
    assert half.filled == filled


def test_a_preview_does_not_take_the_part_for_other_terms(half: Play) -> None:
    preview = preview_sync(half.journal, half.campaign, POOL)
    assert list(preview.sentences()) == ["submitted work keeps its state", "would hand out: nothing"]


def test_a_form_that_a_model_filled_says_so_also_after_a_void_submission(half: Play) -> None:
    half.submit("annotate", ANN, [])  # bypasses the form
    again = {image: task for image, _, task in half.tasks("rework")}
    assert {image for image, task in again.items() if task.predictions} == half.filled
    assert all((PRE_ANNOTATED in task.data["rules"]) == bool(task.predictions) for task in again.values())


def test_rows_are_marked_where_people_got_a_record_and_not_where_one_was_withheld(workspace: Workspace) -> None:
    counts = {"n_in": 60, "n_out": 60, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0}
    facts = {**counts, "reasons": {}, "usage": {}}
    workspace.tables.write(POOL_TABLE, PoolImage, POOL, [], inputs="", facts=facts)
    rows = [PreAnnotation(image, "?", "17", "ocr", None, (), "seer", Usage()) for image in IMAGES]
    workspace.tables.write(PRE_ANNOTATIONS, PreAnnotation, rows, [], inputs="", facts=facts)
    play = Play(workspace.annotation)
    with AnnotationStages.of_workspace(workspace) as stages:
        # the last ten were written after their tasks had gone out; a version before would have noted nothing either
        assert stages.read().pre_annotated == play.filled | set(IMAGES[50:])


def test_a_journal_of_the_version_before_is_read_and_an_older_program_refuses_the_new_one(half: Play) -> None:
    with sqlite3.connect(half.journal.path) as plain:
        assert plain.execute("pragma user_version").fetchone() == (6,)
        plain.execute("update terms set raw = json_remove(raw, '$.pre_annotation')")
        plain.executescript("alter table people drop column is_active; drop table practice; pragma user_version = 4")
    half.journal = Journal(half.journal.path.parent)
    assert half.journal.practice() == {}
    assert {state.pre_annotation for state in half.states.values()} == {""}
    assert [len(tasks) for _, tasks in half.journal.record_tasks(ROUNDS)] == [1] * 60
