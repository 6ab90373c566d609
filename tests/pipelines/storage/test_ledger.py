"""The ledger: an act that was paid for once is never paid for again, however a run ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from darkroom.pipelines.storage.cached_calls import CachedCall, Totals
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.ledger import Ledger, call_key

KILLED = """
import sys
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger, call_key
ledger = Ledger(sys.argv[1])
for n in range(100_000):
    ledger.put(call_key("policy", {"n": n}), "policy", {"n": n}, CachedCall({"text": str(n)}))
    print(n, flush=True)
"""
RACER = """
import sys
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger
sys.stdin.readline()
with Ledger(sys.argv[1]) as ledger:
    for n in range(20):
        print(ledger.put(f"key{n}", "policy", {}, CachedCall({"by": sys.argv[2]})).result["by"])
"""


class Performed:
    """An act that counts how often it was performed."""

    def __init__(self, *, fails: int = 0) -> None:
        self.n, self._fails = 0, fails

    async def __call__(self) -> CachedCall:
        self.n += 1
        n = self.n
        await asyncio.sleep(0.01)
        if n <= self._fails:
            raise ValueError("the endpoint gave up")
        return CachedCall({"n": n}, seconds=2.0, cost_usd=0.5)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://u:hunter2@127.0.0.1:1/db",
        "sqlite:////no/such/folder/l.sqlite",
        "",
        "ledger.sqlite",
        "mysql://u:hunter2@host/db",
        "nosuch://u:hunter2@host/db",
        "postgresql+nosuch://u:hunter2@host/db",
        "postgresql+psycopg://host:1/db?password=hunter2",
    ],
)
def test_a_database_that_cannot_be_had_names_the_variable_and_no_password(url):
    with pytest.raises(LedgerUnavailable, match="DARKROOM_LEDGER") as caught:
        Ledger(url)
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_no_database_is_unavailable(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_text("these are notes, not a database" * 100)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        Ledger(f"sqlite:///{path}")


def test_a_killed_process_loses_nothing_that_was_returned(ledger_url):
    process = subprocess.Popen([sys.executable, "-c", KILLED, ledger_url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    returned = [int(process.stdout.readline()) for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    returned += [int(line) for line in process.stdout.read().splitlines() if line]
    process.wait()
    process.stdout.close()
    with Ledger(ledger_url) as ledger:
        found = [ledger.get(call_key("policy", {"n": n})) for n in returned]
        assert [act.result["text"] for act in found if act] == [str(n) for n in returned]
        assert ledger.totals()["policy"].calls in (len(returned), len(returned) + 1)


@pytest.mark.soak
def test_processes_that_start_at_once_agree_on_who_was_first(ledger_url):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, ledger_url, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=300)[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert said[0] == said[1] == said[2]
    with Ledger(ledger_url) as ledger:
        assert ledger.totals()["policy"].calls == 20


def test_the_first_writer_wins(ledger):
    first, second = CachedCall({"text": "one"}, 1.0, 0.1), CachedCall({"text": "two"}, 2.0, 0.2)
    assert ledger.put("key", "policy", {}, first) == first
    assert ledger.put("key", "policy", {}, second) == first
    assert ledger.get("key") == first


def test_an_act_that_was_not_made_is_none(ledger):
    assert ledger.get("nothing") is None
    assert ledger.totals() == {}


@pytest.mark.parametrize("text", ["", "naïve ✓", "\0", "\ud800 a lone surrogate", "x" * 2_000_000])
def test_whatever_a_model_writes_comes_back(ledger, text):
    ledger.put("key", "policy", {"asked": text}, CachedCall({"text": text}))
    found = ledger.get("key")
    assert found is not None
    assert found.result == {"text": text}


def test_an_act_is_performed_once(ledger):
    perform = Performed()
    request = {"messages": ["hello"]}
    first = asyncio.run(ledger.get_or_run("policy", request, perform))
    assert asyncio.run(ledger.get_or_run("policy", request, perform)) == first
    assert perform.n == 1


def test_an_act_that_is_asked_for_twice_at_once_is_performed_once(ledger):
    perform = Performed()

    async def both() -> list[CachedCall]:
        return await asyncio.gather(*(ledger.get_or_run("policy", {"n": 1}, perform) for _ in range(5)))

    assert {json.dumps(dict(act.result)) for act in asyncio.run(both())} == {'{"n": 1}'}
    assert perform.n == 1


def test_a_failed_act_is_tried_by_the_next_one_who_waits(ledger):
    perform = Performed(fails=1)

    async def both() -> list[CachedCall | BaseException]:
        return await asyncio.gather(
            *(ledger.get_or_run("policy", {}, perform) for _ in range(3)), return_exceptions=True
        )

    failed, *others = asyncio.run(both())
    assert isinstance(failed, ValueError)
    assert others == [CachedCall({"n": 2}, 2.0, 0.5)] * 2
    assert perform.n == 2


def test_who_is_cancelled_does_not_cancel_those_who_wait(ledger):
    begun: list[int] = []

    async def one_of_two() -> CachedCall:
        is_performing, may_end = asyncio.Event(), asyncio.Event()

        async def perform() -> CachedCall:
            begun.append(len(begun))
            is_performing.set()
            await may_end.wait()
            return CachedCall({"n": len(begun)})

        first = asyncio.create_task(ledger.get_or_run("policy", {}, perform))
        second = asyncio.create_task(ledger.get_or_run("policy", {}, perform))
        await is_performing.wait()
        first.cancel()
        may_end.set()
        return await second

    assert asyncio.run(one_of_two()).result == {"n": 2}


def test_different_acts_do_not_wait_for_each_other(ledger):
    running: set[int] = set()

    async def overlapping(n: int) -> CachedCall:
        running.add(n)
        while len(running) < 3:
            await asyncio.sleep(0)
        return CachedCall({"n": n})

    async def all_three() -> list[CachedCall]:
        calls = (ledger.get_or_run("policy", {"n": n}, lambda n=n: overlapping(n)) for n in range(3))
        return await asyncio.wait_for(asyncio.gather(*calls), 120)

    assert [act.result["n"] for act in asyncio.run(all_three())] == [0, 1, 2]


@pytest.mark.parametrize("other", [("judge", {"a": 1}), ("policy", {"a": 2}), ("policy", {"a": 1, "b": None})])
def test_everything_of_a_request_is_part_of_its_key(other):
    assert call_key(*other) != call_key("policy", {"a": 1})


def test_a_failed_act_leaves_nothing_behind(ledger):
    with pytest.raises(ValueError, match="gave up"):
        asyncio.run(ledger.get_or_run("policy", {}, Performed(fails=1)))
    assert ledger.totals() == {}


def test_what_is_made_at_once_is_durable_together(ledger):
    n_durable: list[int] = []

    @sa.event.listens_for(ledger.engine, "commit")
    def _count(connection: sa.Connection) -> None:
        n_durable.append(connection.exec_driver_sql("SELECT count(*) FROM acts").scalar_one())

    async def made(question: int) -> None:
        async def perform(places):
            return {place: CachedCall({"n": place}) for place in places}

        await ledger.all_of("policy", [{"question": question, "seed": n} for n in range(8)], perform)

    async def all_made() -> None:
        await asyncio.gather(*(made(question) for question in range(1000)))

    asyncio.run(all_made())
    assert ledger.totals()["policy"].calls == 8000
    assert len(n_durable) > 1
    assert all(n % 8 == 0 for n in n_durable)


def test_totals_add_up_by_kind(ledger):
    ledger.put("a", "policy", {}, CachedCall({}, 1.5, 0.25))
    ledger.put("b", "policy", {}, CachedCall({}, 0.5, 0.5))
    ledger.put("c", "sandbox", {}, CachedCall({}, 3.0))
    assert ledger.totals() == {"policy": Totals(2, 2.0, 0.75), "sandbox": Totals(1, 3.0, 0.0)}


def test_the_ledger_outlives_its_process(ledger_url):
    with Ledger(ledger_url) as ledger:
        ledger.put("key", "policy", {}, CachedCall({"n": 1}))
    with Ledger(ledger_url) as ledger:
        assert ledger.get("key") == CachedCall({"n": 1})


def test_acts_are_found_by_their_seeds_whatever_a_model_wrote(ledger_url):
    said = 'é, \U0001f600, a NUL \x00, a \ud800 alone, {"seed": 8}'
    with Ledger(ledger_url) as ledger:
        for n, seed in enumerate((7, 8)):
            ledger.put(f"{n:064}", "policy", {"seed": seed, "messages": [said]}, CachedCall({"n": n}))
        ledger.put("c" * 64, "policy", {"messages": [said]}, CachedCall({}))
        ledger.put("d" * 64, "judge", {"seed": 7}, CachedCall({}))
        (found,) = ledger.with_seeds("policy", [7, 99])
        assert (found.call.result, found.request["messages"]) == ({"n": 0}, [said])
        assert ledger.with_seeds("policy", []) == []


@pytest.fixture
def forbid_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """For root, whom no permission stops."""
    return partial(monkeypatch.setattr, "os.access", lambda path, _: Path(path) != tmp_path)


def test_a_finished_ledger_in_a_folder_that_cannot_be_written_is_read(
    tmp_path: Path, forbid_writing: Callable[[], None]
) -> None:
    url = f"sqlite:///{tmp_path / 'a ledger#1.sqlite'}"
    with Ledger(url) as ledger:
        ledger.put("key", "policy", {}, CachedCall({"text": "paid"}))
    forbid_writing()
    with Ledger(url) as ledger:
        found = ledger.get("key")
        assert found is not None
        assert found.result == {"text": "paid"}
        with pytest.raises(sa.exc.OperationalError, match="readonly"):
            ledger.put("other", "policy", {}, CachedCall({}))
    assert {path.name for path in tmp_path.iterdir()} == {"a ledger#1.sqlite"}


def test_what_is_in_the_log_of_a_ledger_that_cannot_be_written_is_not_passed_over(
    tmp_path: Path, forbid_writing: Callable[[], None]
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    with Ledger(url) as writing:
        writing.put("key", "policy", {}, CachedCall({"text": "paid"}))
        assert (tmp_path / "ledger.sqlite-wal").stat().st_size
        forbid_writing()
        with Ledger(url) as ledger:
            assert ledger.get("key") is not None
