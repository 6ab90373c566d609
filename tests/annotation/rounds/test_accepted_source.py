"""Accepted records as a source and as samples, from tables as a campaign writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.annotation.rounds.accepted_source import AcceptedSource, annotators_of, read_accepted, to_sample
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.tables import ACCEPTED, RECORDED
from darkroom.pipelines.records import Annotated, ImageRef, PoolImage, TruthBox
from darkroom.pipelines.sources import BadRow
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import textured

RECORDED_ACCEPTED, RECORDED_POOL = (replace(key, partition=RECORDED) for key in (ACCEPTED, POOL))
ELSEWHERE = ImageRef("e" * 64, 640, 480, "RGB", "PNG")
BOXES = (TruthBox("signs", 20, 50, 30, 80), TruthBox("a", 25, 40, 60, 70), TruthBox("b", 10, 60, 20, 70))


def row(image: ImageRef, *boxes: TruthBox, name: str = "a.jpg", pre_annotated: bool = False) -> Annotated:
    return Annotated(image, "ours", name, "CC0-1.0", "How many?", "2", "count", 2, boxes, 0, pre_annotated, ())


def write(workspace: Workspace, key: TableKey, kind: type, rows: list, **notes: str) -> None:
    facts: dict[str, Any] = {"n_in": len(rows), "n_out": len(rows), "reasons": {}, "usage": {}, "notes": notes}
    workspace.tables.write(key, kind, rows, [], inputs="x", facts=facts)


@pytest.fixture
def image(workspace: Workspace) -> ImageRef:
    return workspace.images.add_pixels(textured(1))


def test_a_row_has_one_target_around_all_that_people_drew(workspace: Workspace, image: ImageRef) -> None:
    write(workspace, POOL, PoolImage, [])
    records = [row(image, *BOXES[:n], name=name) for n, name in ((3, "a.jpg"), (2, "b"), (1, "c"), (0, "d"))]
    write(workspace, ACCEPTED, Annotated, records)
    source = AcceptedSource(workspace)
    several, two, single, none = source.rows(0)
    assert (source.n_shards, source.name) == (1, "accepted_annotations")
    assert several.truth.boxes == (TruthBox("signs", 10, 40, 60, 80),)
    assert two.truth.boxes == (TruthBox("signs", 20, 40, 60, 80),)
    assert (single.truth.boxes, none.truth.boxes) == (BOXES[:1], ())
    assert several.images == (workspace.images.read(image),)
    told = (several.row, several.question, several.answer, several.truth.count, several.category, several.license)
    assert told == ("a.jpg", "How many?", "2", 2, "count", "CC0-1.0")


def test_a_row_whose_image_is_gone_is_a_bad_row_and_the_next_one_is_read(workspace: Workspace, image: ImageRef) -> None:
    write(workspace, POOL, PoolImage, [])
    write(workspace, ACCEPTED, Annotated, [row(ELSEWHERE, name="gone"), row(image)])
    gone, there = AcceptedSource(workspace).rows(0)
    assert isinstance(gone, BadRow)
    assert (gone.row, gone.reason) == ("gone", "missing_image")
    assert there.row == "a.jpg"


def test_a_record_is_about_the_view_that_people_saw(workspace: Workspace, image: ImageRef) -> None:
    large = ImageRef("f" * 64, 1280, 960, "RGB", "JPEG")
    write(workspace, POOL, PoolImage, [PoolImage(large, "ours", "a.jpg", "", view=image)])
    write(workspace, ACCEPTED, Annotated, [row(large, TruthBox("sign", 20, 40, 60, 80))], campaign="streets")
    (shown,) = AcceptedSource(workspace).rows(0)
    assert shown.truth.boxes == (TruthBox("sign", 10, 20, 30, 40),)
    assert read_accepted(workspace).samples[0].images == (image,)


def test_a_source_changes_with_its_records_and_its_pool(workspace: Workspace, image: ImageRef) -> None:
    prints = []
    for records, pool in (([], []), ([row(image)], []), ([row(image)], [PoolImage(image, "ours", "a", "")])):
        write(workspace, POOL, PoolImage, pool)
        write(workspace, ACCEPTED, Annotated, records)
        prints.append(AcceptedSource(workspace).fingerprint)
        assert AcceptedSource(workspace).fingerprint == prints[-1]
    assert len({*prints}) == 3


def test_without_records_there_are_no_samples_and_people_would_write_them(workspace: Workspace) -> None:
    assert read_accepted(workspace) == ([], "people", frozenset())
    assert annotators_of(workspace) == "people"
    write(workspace, ACCEPTED, Annotated, [], campaign="c", annotators="simulated")
    assert read_accepted(workspace) == ([], "people", frozenset())


def test_the_own_campaigns_records_come_before_a_recordings(workspace: Workspace, image: ImageRef) -> None:
    for key in (RECORDED_POOL, POOL):
        write(workspace, key, PoolImage, [])
    rows = [row(image), row(image, name="b", pre_annotated=True)]
    write(workspace, RECORDED_ACCEPTED, Annotated, rows, campaign="recorded", annotators="simulated")
    write(workspace, ACCEPTED, Annotated, [])
    samples, annotators, from_drafts = read_accepted(workspace)
    assert samples == [to_sample(each, campaign="recorded") for each in rows]
    assert (annotators, from_drafts) == ("simulated", frozenset({samples[1].sample_id}))
    write(workspace, ACCEPTED, Annotated, rows[:1], campaign="own")
    own = read_accepted(workspace)
    assert (len(own.samples), own.annotators, own.from_drafts) == (1, "people", frozenset())
    assert own.samples[0].source == "annotation/own"
