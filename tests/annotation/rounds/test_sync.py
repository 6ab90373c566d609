"""What a sync decides to do; how it gets there is in test_handover.py and in tests/e2e/annotation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.task_exchange import TaskExchange
from darkroom.pipelines.records import ImageRef, PoolImage
from tests.annotation.desk import ANN, BOB, PEOPLE, SIZE, accepts, record
from tests.annotation.memory_studio import MemoryStudio
from tests.annotation.rounds.test_task_exchange import Server

POOL = [PoolImage(ImageRef(letter * 64, *SIZE, "RGB", "JPEG"), "ours", letter, "CC0-1.0") for letter in "cab"]


class Studio(Server):
    """The server in memory, with accounts and nothing refused."""

    def people(self) -> list[Any]:
        return PEOPLE

    def create_project(self, campaign: str, round: str, *, n_excluded: int, guide: str = "") -> int:
        number = len(self.projects) + 1
        self.projects.add(number)
        return number

    def changed_since(self, project_id: int, watermark: str, **more: Any) -> Any:
        return iter(super().changed_since(project_id, watermark) if project_id == 1 else ())

    def listed(self, project_id: int) -> Any:
        return super().listed(project_id) if project_id == 1 else []


@pytest.fixture
def sync(tmp_path: Path) -> Sync:
    return Sync(Journal(tmp_path), Studio(), Campaign(name="c"), say=lambda text: None)  # type: ignore[arg-type]


def test_every_image_goes_out_once(sync: Sync) -> None:
    assert sync.run(POOL) == {"annotate": 3}
    assert sync.run(POOL) == {}


def test_queues_get_their_forms_and_projects_back_as_the_rounds_do(sync: Sync) -> None:
    server: Any = sync.server
    reset: list[tuple[int, str]] = []
    server.reset_form = lambda project_id, round, **more: reset.append((project_id, round))
    exchange = TaskExchange(sync.journal, server, sync.campaign)
    with sync.journal.lock():
        exchange.pull("review")
    sync.run(POOL, reset_forms=True)
    assert (1, "review") in reset
    server.projects.remove(1)
    with pytest.raises(AnnotationError, match="--recreate"):
        sync.run(POOL, reset_forms=True)
    sync.run(POOL, recreate=True)
    recreated = sync.journal.project("review")
    assert recreated is not None
    assert recreated.project_id in server.projects


def test_images_that_are_added_go_out_and_those_that_left_are_forgotten(sync: Sync) -> None:
    sync.run(POOL[:1])
    assert sync.run(POOL) == {"annotate": 2}
    assert sync.run(POOL[1:]) == {}


def test_states_are_derived_of_changed_records_only(sync: Sync, monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[str] = []
    state = StateMachine.state

    def counted(self: StateMachine, item_id: str, tasks: Any) -> Any:
        derived.append(item_id[0])
        return state(self, item_id, tasks)

    monkeypatch.setattr(StateMachine, "state", counted)
    sync.run(POOL)
    sync.run(POOL)
    assert derived == ["a", "b", "c"], "nothing has changed"
    sync.server.annotations[2] = [{"id": 5, "completed_by": 2, "result": [1]}]  # type: ignore[attr-defined]
    sync.run(POOL)
    assert derived[3:] == ["b"]
    sync.run(POOL[:2])
    assert derived[4:] == ["a", "c"], "another pool may mean other work for all"


@pytest.mark.parametrize("act", ["request", "add_tasks", "set_synced"])
def test_touched_records_are_derived_again_after_a_kill(sync: Sync, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission of item a, whose check is not handed out before the kill."""
    sync.run(POOL)
    result = record()
    sync.server.annotations[1] = [{"id": 5, "completed_by": ANN, "result": result}]  # type: ignore[attr-defined]

    def die(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, act, die)
        with pytest.raises(KeyboardInterrupt):
            sync.run(POOL)
    sync.run(POOL)
    assert [row[:2] for row in sync.journal.progress()] == [("waiting", "cross_check"), ("waiting", "annotate")]
    checks = [
        work for _, works in sync.journal.record_tasks(["cross_check"]) for work in works if work.task_id is not None
    ]
    assert len(checks) == 1


def test_a_journal_from_before_triggers_is_derived_once_and_then_by_what_is_touched(sync: Sync) -> None:
    sync.run(POOL)
    path = sync.journal.path
    sync.journal.__exit__()
    with closing(sqlite3.connect(path)) as plain:
        for kind, name in plain.execute("select type, name from sqlite_master where type = 'trigger'").fetchall():
            plain.execute(f"drop {kind} {name}")
        plain.executescript(
            "drop table touched; drop table progress; alter table people drop column is_active; pragma user_version = 2"
        )
    with Journal(path.parent) as journal:
        again = replace(sync, journal=journal)
        sync.server.annotations[1] = [{"id": 5, "completed_by": ANN, "result": record()}]  # type: ignore[attr-defined]
        assert again.run(POOL) == {"cross_check": 1}
        assert [row[1:] for row in journal.progress()] == [("cross_check", 1), ("annotate", 2)]
        assert again.run(POOL) == {}


def test_the_work_grows_with_the_changes_and_not_with_the_campaign(tmp_path: Path) -> None:
    """In instructions of the database, which no load changes: four times the tasks are four times the work, not 16."""
    small, large = (Played(tmp_path / str(n), n) for n in (250, 1000))
    assert large.hand_out / small.hand_out < 4.5
    assert large.take_in / small.take_in < 4.5
    assert large.few / small.few < 3, "ten submissions: what is left are counts over all tasks"


class Played:
    """Instructions of SQLite, in hundreds, for a campaign of so many records."""

    def __init__(self, folder: Path, n_records: int) -> None:
        self._n = 0
        pool = [
            PoolImage(ImageRef(f"{n:064x}", *SIZE, "RGB", "JPEG"), "ours", str(n), "CC0-1.0") for n in range(n_records)
        ]
        journal, studio = Journal(folder), MemoryStudio()
        journal._db.set_progress_handler(self._count, 100)
        sync = Sync(journal, studio, Campaign(name="c", gold_share=0), say=lambda text: None)
        self.hand_out = self._counted(lambda: sync.run(pool))
        for task in range(1, n_records + 1):
            studio.submit(task, ANN, record())
        self.take_in = self._counted(lambda: sync.run(pool))
        studio.clock += timedelta(hours=1)
        sync.run(pool)
        checks = [number for number, task in studio.tasks.items() if task.project == 2][:10]
        for task in checks:
            studio.submit(task, BOB, accepts())
        self.few = self._counted(lambda: sync.run(pool))

    def _count(self) -> int:
        self._n += 1
        return 0

    def _counted(self, act: Callable[[], object]) -> int:
        before = self._n
        act()
        return self._n - before


def test_tasks_go_out_in_the_order_of_their_digests(sync: Sync) -> None:
    sync.run(POOL)
    shown = [task["data"]["image"][-1] for task in sync.server.tasks.values()]  # type: ignore[attr-defined]
    assert shown == ["a", "b", "c"]
