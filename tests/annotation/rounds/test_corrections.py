"""A submission that is corrected before anybody has begun the task that builds on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import Record
from darkroom.annotation.rounds.sync import Sync, record_states
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.reject_reasons import Reason
from tests.annotation.desk import ANN, BOB, CEM, SIZE, accepts, record, rejects
from tests.annotation.memory_studio import MemoryStudio

POOL = [PoolImage(ImageRef("a" * 64, *SIZE, "RGB", "JPEG"), "ours", "a", "CC0-1.0")]


@pytest.fixture
def sync(tmp_path: Path) -> Sync:
    """A campaign whose record is written and waits for its check."""
    made = Sync(Journal(tmp_path), MemoryStudio(), Campaign(name="c", gold_share=1), say=lambda text: None)
    made.run(POOL)
    studio(made).submit(studio(made).open_task("annotate"), ANN, record(answer="first"))
    made.run(POOL)
    return made


def studio(sync: Sync) -> MemoryStudio:
    assert isinstance(sync.server, MemoryStudio)
    return sync.server


def correct(sync: Sync, round: str, result: list[dict[str, Any]]) -> int:
    """Its author changes the newest submission of a round; gives its number."""
    server = studio(sync)
    task = server.tasks[server.open_task(round)]
    task.annotations[-1]["result"] = result
    server.clock = task.updated_at = server.clock.replace(hour=server.clock.hour + 1)
    return int(task.annotations[-1]["id"])


def state(sync: Sync) -> Record:
    (found,) = record_states(POOL, sync.journal, sync.campaign)
    return found


def test_the_check_that_nobody_has_begun_is_handed_out_anew_with_the_corrected_record(sync: Sync) -> None:
    server = studio(sync)
    before = server.open_task("cross_check")
    number = correct(sync, "annotate", record(answer="second"))
    assert sync.run(POOL) == {"cross_check": 1}
    after = server.open_task("cross_check")
    assert before not in server.tasks
    assert server.tasks[after].data["base"] == [number]
    assert "second" in server.tasks[after].data["record_shown"]
    assert state(sync).state.invalid == []
    assert sync.run(POOL) == {}
    server.submit(after, BOB, accepts())
    sync.run(POOL)
    written = state(sync).state.fields
    assert written is not None
    assert written.answer == "second"


def test_one_that_the_server_has_deleted_with_the_correction_is_too(sync: Sync) -> None:
    correct(sync, "annotate", record(answer="second"))
    del studio(sync).tasks[studio(sync).open_task("cross_check")]
    assert sync.run(POOL) == {"cross_check": 1}


def test_one_that_was_begun_stays_and_the_correction_is_late(sync: Sync) -> None:
    studio(sync).opened.add(studio(sync).open_task("cross_check"))
    correct(sync, "annotate", record(answer="second"))
    assert sync.run(POOL) == {}
    assert [entry.reason for entry in state(sync).state.invalid] == [Reason.LATE_EDIT]


def test_the_second_of_two_verdicts_counts_as_the_first_does(tmp_path: Path) -> None:
    campaign = Campaign(name="c", gold_share=0, checked_twice=1, seed=1)
    sync = Sync(Journal(tmp_path), MemoryStudio(), campaign, say=lambda text: None)
    server = studio(sync)
    sync.run(POOL)
    server.submit(server.open_task("annotate"), ANN, record())
    sync.run(POOL)
    for person in (BOB, CEM):
        server.submit(server.open_task("cross_check"), person, accepts())
    assert sync.run(POOL) == {"accept": 1}
    assert len(server.tasks[server.open_task("accept")].data["base"]) == 2
    correct(sync, "cross_check", rejects())
    assert sync.run(POOL) == {"rework": 1}


def test_a_verdict_that_is_corrected_sends_the_record_another_way(sync: Sync) -> None:
    server = studio(sync)
    check = server.tasks[server.open_task("cross_check")]
    server.submit(server.open_task("cross_check"), BOB, accepts())
    assert sync.run(POOL) == {"accept": 1, "cross_check": 1}, "with a copy that has a planted error"
    check.annotations[-1]["result"] = rejects()
    server.clock = check.updated_at = server.clock.replace(hour=server.clock.hour + 1)
    assert sync.run(POOL) == {"rework": 1}
    assert [task.request.round for task in state(sync).tasks] == ["annotate", "cross_check", "rework"]
    server.submit(server.open_task("rework"), CEM, record(answer="third"))
    assert sync.run(POOL) == {"cross_check": 1}
