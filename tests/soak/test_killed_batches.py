"""Work that waits for batches, killed at each request to the service, before and after it is done, and at random
moments: no request is sent twice, no answer is paid twice, and the tables are those of a run that nobody disturbed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, batch_queue, http_client
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability
from darkroom.pipelines.storage.storage_errors import AnswersPending
from tests.batch_service import BatchService, answered
from tests.drafting import PARTITION
from tests.soak import rl_stages

N_ROWS, N_VOTES, WAITS = 40, 4, 75
SETTLED = 1.0
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.soak.test_killed_batches", http_client.__name__])
REQUESTS = ["POST /files", "POST /batches", "GET /batches", "GET /batches/batch_0", "GET /files/file-1/content"]
"""In the order in which a life makes them; the third one is made by a life that does not know its batch's name."""


def work(url: str, home: Path, batch: Any) -> None:
    """Two stages, or what is left of them; ends with 75 where answers are waited for."""
    batch_queue.SETTLED_SECONDS = SETTLED
    with rl_stages.open_workspace(home) as workspace:
        shard, endpoint = Shard(workspace, PARTITION), Endpoint(url, "mock", concurrency=8, batch=batch)
        try:
            shard.materialize(Suitability(judge=OpenAIPolicy(endpoint, workspace.images), n_votes=N_VOTES))
            shard.materialize(PassRates(student=OpenAIPolicy(endpoint, workspace.images), n_answers=N_VOTES))
        except AnswersPending:
            raise SystemExit(WAITS) from None


def live(service: BatchService, home: Path, batch: Any = "openai", *, seconds: float | None = None) -> int | None:
    """One life, killed after ``seconds`` or at a request. Returns its exit status."""
    process = _FORKING.Process(target=work, args=(service.url, home, batch))
    process.start()
    service.process = process.pid
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode


def finish(service: BatchService, home: Path, batch: Any = "openai") -> None:
    for _ in range(20):
        status = live(service, home, batch)
        if status == 0:
            return
        assert status == WAITS
        service.end_all()
        time.sleep(SETTLED * 1.1)
    raise AssertionError("answers are waited for without end")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    home = tmp_path_factory.mktemp("undisturbed")
    rl_stages.prepare(home, N_ROWS)
    with BatchService().serving() as service:
        assert live(service, home, "off") == 0
    return tables(home)


@pytest.fixture
def service() -> Iterator[BatchService]:
    with BatchService().serving() as serving:
        yield serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rl_stages.prepare(tmp_path, N_ROWS)
    return tmp_path


def tables(home: Path) -> dict[str, bytes]:
    root = home / "tables"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def check(service: BatchService, home: Path, undisturbed: dict[str, bytes]) -> None:
    assert tables(home) == undisturbed
    assert set(service.paid.values()) == {1}
    assert service.paid.total() == 2 * N_ROWS * N_VOTES
    assert service.n_live == 0
    sent = sum(len(service.lines(name)) for name in service.batches)
    assert sent == 2 * N_ROWS


def kill(service: BatchService) -> None:
    os.kill(service.process, signal.SIGKILL)
    raise ConnectionAbortedError


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_at_any_request_repeats_nothing(
    service: BatchService, home: Path, undisturbed: dict[str, bytes], request_: str, moment: str
) -> None:
    hooks: dict[str, Callable[[], object]] = service.fails if moment == "before" else service.after  # type: ignore[assignment]
    killing = partial(kill, service)
    if request_ == "GET /batches":  # asked by whoever comes after a life that heard nothing
        service.after["POST /batches"] = killing
        assert live(service, home) == -signal.SIGKILL
        service.after.clear()
    elif not request_.startswith("POST"):
        assert live(service, home) == WAITS
        service.end_all()
    hooks[request_] = killing
    assert live(service, home) == -signal.SIGKILL
    service.fails.clear()
    service.after.clear()
    time.sleep(SETTLED * 1.1)
    finish(service, home)
    check(service, home, undisturbed)


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_repeat_nothing(
    service: BatchService, home: Path, undisturbed: dict[str, bytes], seed: int
) -> None:
    chance, n_killed = random.Random(seed), 0
    for _ in range(25):
        status = live(service, home, seconds=chance.uniform(0.02, 0.5))
        n_killed += status == -signal.SIGKILL
        if status == 0:
            break
        if chance.random() < 0.5:
            service.end_all()
        time.sleep(SETTLED * 1.1)
    finish(service, home)
    assert n_killed > 3
    check(service, home, undisturbed)


@pytest.mark.parametrize("seed", range(2))
def test_kills_leave_a_folder_whole(
    service: BatchService, home: Path, undisturbed: dict[str, bytes], seed: int
) -> None:
    chance, folder = random.Random(seed), home / "batches" / "mock"
    for n in range(40):
        status = live(service, home, "folder", seconds=chance.uniform(0.02, 0.5) if n < 20 else None)
        if status == 0:
            break
        if chance.random() < 0.5 or n >= 20:
            answer_folder(service, folder)
    assert status == 0
    assert tables(home) == undisturbed
    assert set(service.paid.values()) == {1}
    assert not list(folder.glob("requests-*.jsonl"))


def answer_folder(service: BatchService, folder: Path) -> None:
    """What `vllm run-batch` makes of every file that it has not answered."""
    for requests in folder.glob("requests-*.jsonl"):
        answers = requests.with_name(requests.name.replace("requests", "answers"))
        if not answers.exists():
            lines = [answered(json.loads(line)) for line in requests.read_text().splitlines()]
            service.pay(lines)
            answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
