"""What a sync decides to do; how it gets there is in test_handover.py and in tests/e2e/test_annotation.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.rounds.campaign import Campaign
from annotation.rounds.journal import Journal
from annotation.rounds.sync import Sync
from pipelines.records import ImageRef, PoolImage
from tests.annotation.desk import PEOPLE, SIZE
from tests.annotation.rounds.test_task_exchange import Server

POOL = [PoolImage(ImageRef(letter * 64, *SIZE, "RGB", "JPEG"), "ours", letter, "CC0-1.0") for letter in "cab"]


class Studio(Server):
    """The server in memory, with accounts and nothing refused."""

    def people(self) -> list[Any]:
        return PEOPLE

    def blocked_submissions(self, after: int) -> list[Any]:
        return []

    def create_project(self, campaign: str, round: str, *, n_excluded: int, language: str = "en") -> int:
        number = len(self.projects) + 1
        self.projects.add(number)
        return number

    def changed_since(self, project_id: int, watermark: str, *, n_excluded: int) -> Any:
        return iter(super().changed_since(project_id, watermark, n_excluded=n_excluded) if project_id == 1 else ())

    def tasks_after(self, project_id: int, task_id: int) -> Any:
        return iter(super().tasks_after(project_id, task_id) if project_id == 1 else ())


@pytest.fixture
def sync(tmp_path: Path) -> Sync:
    return Sync(Journal(tmp_path), Studio(), Campaign(name="c"), say=lambda text: None)  # type: ignore[arg-type]


def test_every_image_goes_out_once(sync: Sync) -> None:
    assert sync.run(POOL).imported == {"annotate": 3}
    assert sync.run(POOL).imported == {}


def test_images_that_are_added_go_out_and_those_that_left_are_forgotten(sync: Sync) -> None:
    sync.run(POOL[:1])
    assert sync.run(POOL).imported == {"annotate": 2}
    assert sync.run(POOL[1:]).imported == {}


def test_records_are_walked_only_when_something_has_changed(sync: Sync, monkeypatch: pytest.MonkeyPatch) -> None:
    sync.run(POOL)
    walked: list[object] = []
    monkeypatch.setattr(Sync, "pending", lambda self, pool: iter(walked.append(pool) or ()))
    sync.run(POOL)
    assert not walked
    sync.server.annotations[1] = [{"id": 5, "completed_by": 2, "result": [1]}]  # type: ignore[attr-defined]
    sync.run(POOL)
    sync.run(POOL[:2])
    assert len(walked) == 2


def test_tasks_go_out_in_the_order_of_their_digests(sync: Sync) -> None:
    sync.run(POOL)
    shown = [task["data"]["image"][-1] for task in sync.server.tasks.values()]  # type: ignore[attr-defined]
    assert shown == ["a", "b", "c"]
