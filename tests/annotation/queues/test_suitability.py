"""Whether a drawing would help: problems go out without answers, words come back as labels that a calibration reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from darkroom.annotation.queues.base import page_task
from darkroom.annotation.queues.table_queues import CHECK, DISPUTED, SuitabilityQueue, VerificationQueue
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import (
    ImageRef,
    Reject,
    Sample,
    SuitabilityReview,
    SuitabilityVotes,
    Truth,
    Verification,
    VideoRef,
    Votes,
)
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.rl.suitability import VOTES
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.judges.calibration import CalibrationError, read_labels
from tests.annotation.desk import ANN, EVE, choice, text
from tests.annotation.queues.test_base import enter, raw
from tests.annotation.rounds.test_sync import Studio

N_PROBLEMS = 24


def problem(number: int, category: str = "maths", images: tuple[ImageRef, ...] = ()) -> Sample:
    question = f"Tom walks {number} <km> north, then east. How far from home is he?"
    return Sample(f"s{number:02d}", "sums", str(number), "", images, question, (), "SECRET", Truth(), category)


@pytest.fixture
def journal(workspace: Workspace) -> Journal:
    return Journal(workspace.annotation)


@pytest.fixture
def server() -> Studio:
    return Studio()


def fill(workspace: Workspace, *samples: Sample) -> None:
    write(workspace, TableKey(SAMPLES, "sums-0000"), Sample, samples)


def write(workspace: Workspace, key: TableKey, kind: type, rows: Sequence, rejects: Sequence[Reject] = ()) -> None:
    facts = {"n_in": 0, "n_out": 0, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "reasons": {}, "usage": {}}
    workspace.tables.write(key, kind, rows, rejects, inputs="x", facts=facts)


@pytest.fixture
def queue(workspace: Workspace, journal: Journal) -> SuitabilityQueue:
    with_image = problem(98, images=(ImageRef("a" * 64, 9, 9, "RGB", "PNG"),))
    fill(workspace, *(problem(number) for number in range(N_PROBLEMS)), problem(99, "chart"), with_image)
    return SuitabilityQueue(workspace, Campaign(name="c"), journal, "sums", "maths")


def task_of(journal: Journal, sample_id: str) -> int:
    works = next(works for item_id, works in journal.record_tasks([SuitabilityQueue.round]) if item_id == sample_id)
    assert works[0].task_id is not None
    return works[0].task_id


def test_problems_of_the_category_go_out_once_and_a_larger_number_keeps_the_smaller(
    queue: SuitabilityQueue, server: Studio
) -> None:
    assert queue.sync(server, n_rows=5) == 5
    first = {task["data"]["page"] for task in server.tasks.values()}
    assert queue.sync(server) == N_PROBLEMS - 5
    assert first < {task["data"]["page"] for task in server.tasks.values()}


def test_the_page_shows_the_problem_and_neither_its_answer_nor_a_vote(workspace: Workspace) -> None:
    page = page_task(problem(3, images=(ImageRef("a" * 64, 9, 9, "RGB", "PNG"),)))["page"]
    assert "Tom walks 3 &lt;km&gt; north" in page
    assert f"/darkroom/images/{'a' * 64}" in page
    assert "SECRET" not in page


def test_words_of_people_become_rows_and_labels_against_which_a_vote_is_calibrated(
    queue: SuitabilityQueue, server: Studio, journal: Journal, workspace: Workspace
) -> None:
    queue.sync(server)
    for number in range(N_PROBLEMS):
        said = "unsure" if number == 7 else "yes" if number % 2 else "no"
        person = EVE if number % 3 else ANN
        result = (choice("helps", said), text("comment", "a map"))
        enter(journal, task_of(journal, f"s{number:02d}"), raw(person, *result, number=100 + number))
    assert queue.materialize().n_out == N_PROBLEMS
    assert queue.counts() == {"yes": 11, "no": 12, "unsure": 1}
    rows = workspace.tables.read(queue.key, SuitabilityReview)
    assert {(row.comment, row.reviewer) for row in rows} == {("a map", "ann@example.com"), ("a map", "eve@example.com")}
    labels = read_labels(workspace.annotation / "suitability.jsonl", CHECK)
    assert (len(labels.labels), len(labels.rejects)) == (23, 0)
    with pytest.raises(CalibrationError, match="0 labels"):
        queue.agreement()
    ballots = [(bool(number % 2),) * 7 + (False,) for number in range(N_PROBLEMS)]
    ballots[1] = (True, False) * 4
    votes = [SuitabilityVotes(f"s{number:02d}", Votes("judge", ballots[number], 8)) for number in range(N_PROBLEMS)]
    write(workspace, TableKey((VOTES,), "sums-0000"), SuitabilityVotes, votes)
    found = queue.agreement()
    assert (found.n_labels, found.n_good, found.precision.value) == (23, 11, 1.0)
    assert 0.8 < found.kappa.value < 1.0
    assert found.kappa.low < found.kappa.value < found.kappa.high


@pytest.fixture
def verification(workspace: Workspace, journal: Journal) -> VerificationQueue:
    image = ImageRef("a" * 64, 9, 9, "RGB", "PNG")
    fill(workspace, problem(1, images=(image,)), problem(2, images=(image,)), problem(3))
    return VerificationQueue(workspace, Campaign(name="c"), journal, "sums")


def test_disputed_samples_go_out_without_the_answers_of_judges_and_no_others_do(
    verification: VerificationQueue, server: Studio
) -> None:
    n_tasks, skipped = verification.sync_disputed(server, {"s01": "6 of 8 judges say 4_5", "s03": "x", "nobody": "x"})
    assert n_tasks == 1
    assert skipped == ["s03", "nobody"]
    [task] = server.tasks.values()
    assert task["data"]["question_shown"].endswith(DISPUTED)
    assert "4_5" not in str(task["data"]), "another's answer would sway people, who get the data with the page"
    assert verification.sync_disputed(server, {"s01": "said otherwise"})[0] == 0


def test_all_images_of_a_sample_are_shown_and_samples_with_a_video_are_left_out(
    verification: VerificationQueue, server: Studio, workspace: Workspace
) -> None:
    images = tuple(ImageRef(digit * 64, 9, 9, "RGB", "PNG") for digit in "123")
    video = replace(problem(5, images=images), videos=(VideoRef("b" * 64, "mp4", 9, 9, 30, 10.0),))
    fill(workspace, problem(4, images=images), video)
    assert verification.sync(server) == 1
    [task] = server.tasks.values()
    assert task["data"]["image"] == "/darkroom/images/" + "1" * 64
    shown = task["data"]["question_shown"]
    assert shown.startswith("**3 images:**")
    assert ["1" * 64 in shown, "2" * 64 in shown, "3" * 64 in shown] == [False, True, True]


def test_verdicts_on_disputed_samples_are_verifications(
    verification: VerificationQueue, server: Studio, journal: Journal, workspace: Workspace
) -> None:
    verification.sync_disputed(server, {"s02": "divided"})
    enter(journal, 1, raw(ANN, choice("match", "mismatch")))
    verification.materialize()
    rows = workspace.tables.read(verification.key, Verification)
    assert [(row.sample_id, row.verdict) for row in rows] == [("s02", "mismatch")]


def test_what_checked_labels_set_aside_as_disputed_is_found(
    verification: VerificationQueue, workspace: Workspace
) -> None:
    assert verification.disputed() == {}
    rejects = tuple(
        reject(reason, f"evidence {number}", stage="checked_labels", row={}, sample_id=f"s0{number}")
        for number, reason in enumerate((Reason.LABEL_DISPUTED, Reason.WRONG_LABEL), 1)
    )
    write(workspace, TableKey(("checked_labels",), "sums-0000"), Sample, (), rejects)
    write(workspace, TableKey(("checked_labels",), "other-0000"), Sample, (), rejects)
    assert verification.disputed() == {"s01": "evidence 1"}


def test_a_page_is_readable_in_the_dark_theme_too() -> None:
    """Its text has the theme's colour, so no background of its own covers what is behind it."""
    assert "background: #" not in page_task(problem(3))["page"]
