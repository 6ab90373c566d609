"""Imports and pulls that are cut off anywhere, against a server in memory that keeps its promises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.annotation import AnnotationError, ServerUnreachable
from darkroom.annotation.label_studio.client import ChangedTask, TaskListing
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import TaskRequest
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.annotation.rounds.task_exchange import PendingTask, TaskExchange
from tests.annotation.memory_studio import OpenStudio


class Server(OpenStudio):
    """What of Label Studio the exchange needs; ``fails`` says at which of its calls it breaks off, and how."""

    def __init__(self) -> None:
        self.tasks: dict[int, dict[str, Any]] = {}
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        self.overlaps: dict[int, int] = {}
        self.projects: set[int] = set()
        self.fails: dict[str, str] = {}
        self.guide = ""

    def create_project(self, campaign: str, round: str, *, n_excluded: int, guide: str = "") -> int:
        self.projects.add(1)
        self.guide = guide
        return 1

    def listed(self, project_id: int) -> list[TaskListing]:
        tasks = self.tasks.items()
        return [TaskListing(n, task["data"]["key"], len(self.annotations.get(n, ()))) for n, task in tasks]

    def changed_since(self, project_id: int, watermark: str, **more: Any) -> Iterator[ChangedTask]:
        for number, found in self.annotations.items():
            yield ChangedTask(number, found)

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        how = self.fails.pop("import", "")
        if how == "before":
            raise ServerUnreachable("down")
        first = len(self.tasks) + 1
        arrived = tasks[: len(tasks) // 2] if how == "half" else tasks
        self.tasks |= {first + n: dict(task) for n, task in enumerate(arrived)}
        if how in ("after", "half"):
            raise ServerUnreachable("cut off")
        return list(range(first, first + len(tasks)))

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        if self.fails.pop("overlaps", ""):
            raise ServerUnreachable("down")
        self.overlaps |= overlaps

    def delete_task(self, task_id: int) -> None:
        del self.tasks[task_id]


def outgoing(n: int, *, overlap: int = 1) -> list[PendingTask]:
    demands = [TaskRequest("annotate", f"item{number}", 0, 0, overlap=overlap) for number in range(n)]
    return [PendingTask(demand, {"data": {}}) for demand in demands]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def exchange(tmp_path: Path, server: Server) -> TaskExchange:
    return TaskExchange(Journal(tmp_path), server, Campaign(name="c"))  # type: ignore[arg-type]


def missing(exchange: TaskExchange, wanted: Sequence[PendingTask]) -> list[PendingTask]:
    known = {work.request for _, works in exchange.journal.record_tasks(ROUNDS) for work in works if work.task_id}
    return [one for one in wanted if one.request not in known]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["before", "after", "half", ""]), min_size=1, max_size=6), st.integers(1, 9))
def test_however_imports_break_off_every_task_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, breaks: list[str], n: int
) -> None:
    server = Server()
    exchange = TaskExchange(Journal(tmp_path_factory.mktemp("journal")), server, Campaign(name="c"))  # type: ignore[arg-type]
    wanted = outgoing(n)
    for how in [*breaks, ""]:
        exchange.pull("annotate")
        server.fails = {"import": how} if how else {}
        try:
            if left := missing(exchange, wanted):
                exchange.push(left)
        except ServerUnreachable:
            continue
    keys = [task["data"]["key"] for task in server.tasks.values()]
    assert sorted(keys) == sorted(exchange.journal.request(one.request for one in wanted))


def test_of_two_tasks_for_one_demand_the_younger_goes(exchange: TaskExchange, server: Server) -> None:
    wanted = outgoing(2)
    exchange.pull("annotate")
    exchange.push(wanted)
    server.tasks |= {3: dict(wanted[0].task), 4: dict(wanted[1].task)}  # an import that was given up ends late
    exchange.pull("annotate")
    assert list(server.tasks) == [1, 2]


def test_a_twin_that_somebody_worked_on_stays(exchange: TaskExchange, server: Server) -> None:
    wanted = outgoing(1)
    exchange.pull("annotate")
    exchange.push(wanted)
    server.tasks[2] = dict(wanted[0].task)
    server.annotations[2] = [{"id": 5, "completed_by": 2, "result": []}]
    exchange.pull("annotate")
    assert list(server.tasks) == [1, 2]


def test_an_overlap_that_could_not_be_set_is_set_later(exchange: TaskExchange, server: Server) -> None:
    exchange.pull("annotate")
    server.fails = {"overlaps": "down"}
    with pytest.raises(ServerUnreachable):
        exchange.push(outgoing(2, overlap=3))
    server.tasks[9] = {"data": {"key": "another team's"}}
    exchange.pull("annotate")
    assert server.overlaps == {1: 3, 2: 3}


def test_tasks_of_others_are_left_alone(exchange: TaskExchange, server: Server) -> None:
    server.tasks[1] = {"data": {"key": "another team's"}}
    exchange.pull("annotate")
    assert list(exchange.journal.record_tasks(ROUNDS)) == []


def test_a_project_that_is_gone_is_made_anew_only_when_asked(exchange: TaskExchange, server: Server) -> None:
    exchange.pull("annotate")
    exchange.push(outgoing(2))
    server.annotations[1] = [{"id": 5, "completed_by": 2, "result": [1]}]
    exchange.pull("annotate")
    server.projects.clear()
    server.tasks.clear()
    with pytest.raises(AnnotationError, match="--recreate"):
        exchange.pull("annotate")
    server.annotations.clear()
    exchange.pull("annotate", recreate=True)
    assert [one.request.item_id for one in missing(exchange, outgoing(2))] == ["item1"], "what was submitted is kept"


def test_a_pull_again_brings_nothing_new(exchange: TaskExchange, server: Server) -> None:
    exchange.pull("annotate")
    exchange.push(outgoing(1))
    server.annotations[1] = [{"id": 5, "completed_by": 2, "result": [1]}]
    exchange.pull("annotate")
    first = exchange.journal.last_version
    exchange.pull("annotate")
    assert (first, exchange.journal.last_version) == (1, 1)


def test_a_project_shows_the_guide_in_the_campaigns_language(tmp_path: Path, server: Server) -> None:
    campaign = Campaign(name="c", language="de", max_share=0.0125)
    TaskExchange(Journal(tmp_path), server, campaign).pull("annotate")  # type: ignore[arg-type]
    first = server.guide.split('<div class="dr-guide')[1]
    assert first.startswith(" dr-de ")
    assert "mehr als 1.25 % der Bildfläche" in first
