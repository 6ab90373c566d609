from __future__ import annotations

from collections.abc import Callable

import pytest

from darkroom.annotation.rounds.accepted_source import AcceptedSource, to_sample
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.tables import ACCEPTED, ANNOTATIONS, CROSS_CHECKS, REFUSED, AnnotationStages
from darkroom.pipelines.records import Annotated, ImageRef, PoolImage, Reject
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, ITEM, SIZE, Desk, accepts, box, record, rejects

IMAGE = ImageRef(ITEM, *SIZE, "RGB", "JPEG")
Make = Callable[[], AnnotationStages]


@pytest.fixture
def make(desk: Desk, workspace: Workspace) -> Make:
    from darkroom.annotation.rounds.image_pool import POOL

    pool = [
        PoolImage(IMAGE, "ours", "a.jpg", "CC0-1.0"),
        PoolImage(ImageRef("b" * 64, *SIZE, "RGB", "JPEG"), "o", "b", ""),
    ]
    facts = {"n_in": 2, "n_out": 2, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "reasons": {}, "usage": {}}
    workspace.tables.write(POOL, PoolImage, pool, [], inputs="x", facts=facts)
    return lambda: AnnotationStages(
        workspace, Campaign(), desk.journal, lambda project, task: f"http://studio/{project}/{task}"
    )


def materialized(stages: AnnotationStages) -> dict[TableKey, StageReport]:
    return stages.materialize(stages.read())


def counts(stages: AnnotationStages) -> list[tuple[int, int, int]]:
    reports = materialized(stages)
    return [
        (reports[key].n_in, reports[key].n_out, reports[key].n_rejected)
        for key in (ANNOTATIONS, CROSS_CHECKS, ACCEPTED)
    ]


def test_records_move_from_table_to_table(desk: Desk, make: Make) -> None:
    assert counts(make()) == [(2, 0, 0), (0, 0, 0), (0, 0, 0)]
    desk.submit(desk.hand_out(), ANN, record())
    assert counts(make()) == [(2, 1, 0), (1, 0, 0), (0, 0, 0)]
    desk.submit(desk.hand_out(), BOB, accepts())
    assert counts(make()) == [(2, 1, 0), (1, 1, 0), (1, 0, 0)]
    desk.submit(desk.hand_out(), EVE, accepts())
    assert counts(make()) == [(2, 1, 0), (1, 1, 0), (1, 1, 0)]


def test_accepted_records_are_a_source_from_the_first_one_on(desk: Desk, make: Make, workspace: Workspace) -> None:
    source = AcceptedSource(workspace)
    assert source.n_shards == 0
    desk.submit(desk.hand_out(), ANN, record())
    desk.submit(desk.hand_out(), BOB, accepts())
    materialized(make())
    assert source.n_shards == 0, "the table is there, and empty"
    desk.submit(desk.hand_out(), EVE, accepts())
    materialized(make())
    assert source.n_shards == 1


def test_who_waits_is_quarantined_with_what_it_waits_for(desk: Desk, make: Make, workspace: Workspace) -> None:
    desk.submit(desk.hand_out(), ANN, record())
    materialized(make())
    [waiting] = workspace.tables.read_rejects(CROSS_CHECKS)
    assert (waiting.reason, waiting.disposition) == ("waiting", "quarantined")
    assert waiting.evidence == "waits for the round cross_check, attempt 1; last seen at http://studio/0/1"


def test_what_people_gave_up_is_rejected_where_it_ended(desk: Desk, make: Make, workspace: Workspace) -> None:
    for _ in range(3):
        desk.submit(desk.hand_out(), ANN, record())
        desk.submit(desk.hand_out(), BOB, rejects("too_easy"))
    assert counts(make()) == [(2, 1, 0), (1, 0, 1), (0, 0, 0)]
    [given_up] = workspace.tables.read_rejects(CROSS_CHECKS)
    assert given_up.reason == "rejected_by_people"
    assert given_up.evidence.startswith("rejected in cross_check for too_easy")
    assert given_up.row.count('"person": "ann@example.com"') == 3, "the whole history is kept"


def test_a_refused_submission_links_to_its_task(desk: Desk, make: Make, workspace: Workspace) -> None:
    desk.submit(desk.hand_out(), ANN, [box(width=50, height=50), *record()[1:]])
    materialized(make())
    [refused] = workspace.tables.read(REFUSED, Reject)
    assert (refused.reason, refused.source_row) == ("breaks_rules", "a.jpg")
    assert "http://studio/9/1, annotation 1" in refused.evidence


def test_nothing_is_written_again_until_something_comes_in(desk: Desk, make: Make) -> None:
    materialized(make())
    assert all(report.reused for report in materialized(make()).values())
    desk.hand_out()
    assert not any(report.reused for report in materialized(make()).values())


def test_an_accepted_record_is_a_sample_without_names(desk: Desk, make: Make, workspace: Workspace) -> None:
    desk.submit(desk.hand_out(), ANN, record())
    desk.submit(desk.hand_out(), BOB, accepts())
    desk.submit(desk.hand_out(), EVE, accepts())
    materialized(make())
    [row] = workspace.tables.read(ACCEPTED, Annotated)
    sample = to_sample(row, campaign="streets")
    assert (sample.source, sample.source_row, sample.license) == ("annotation/streets", "a.jpg", "CC0-1.0")
    assert (sample.question, sample.answer, sample.category) == ("What does the sign say?", "42", "ocr")
    assert [tuple(found.box) for found in sample.truth.boxes] == [(400, 600, 560, 690)]
    assert "example.com" not in repr(sample)
    assert to_sample(row, campaign="streets").sample_id == sample.sample_id
