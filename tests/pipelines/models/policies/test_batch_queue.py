"""Batches: OpenAI's API on loopback through its SDK, and files as `vllm run-batch` has them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, PolicyUnavailable, batch_queue
from darkroom.pipelines.models.policies.settings import EndpointSettings
from darkroom.pipelines.records import Reject
from darkroom.pipelines.rl.suitability import Suitability
from darkroom.pipelines.storage.batch_table import BatchTable
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.workspace import Workspace
from tests.batch_service import BatchService, Line, answered, expired, refused
from tests.drafting import PARTITION, MockSource, take_in
from tests.soak import rl_stages

N_ROWS, N_VOTES = 12, 4
PRICES = {"usd_per_million_prompt_tokens": 1000.0, "usd_per_million_completion_tokens": 1000.0}
Work = Callable[..., StageReport]


@pytest.fixture
def service() -> Iterator[BatchService]:
    with BatchService().serving() as serving:
        yield serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rl_stages.prepare(tmp_path / "home", N_ROWS)
    return tmp_path / "home"


def vote(service: BatchService, home: Path, batch: Any = "openai", **settings: Any) -> StageReport:
    """Several votes on each problem: a request each."""
    with rl_stages.open_workspace(home) as workspace:
        endpoint = Endpoint(service.url, "mock", batch=batch, concurrency=4, **settings)
        judge = OpenAIPolicy(endpoint, workspace.images)
        return Shard(workspace, PARTITION).materialize(Suitability(judge=judge, n_votes=N_VOTES))


def draft(service: BatchService, home: Path, batch: Any = "openai", **settings: Any) -> StageReport:
    """A decision and then a first turn on each image."""
    with rl_stages.open_workspace(home) as workspace:
        policy = OpenAIPolicy(Endpoint(service.url, "mock", batch=batch, **settings), workspace.images)
        return Family(workspace, load_recipes()["direct"], PARTITION).draft(policy)


def finish(service: BatchService, home: Path, work: Work = vote, **settings: Any) -> tuple[StageReport, int]:
    """Run the work until nothing is waited for; also the number of its runs that waited."""
    for n_waits in range(10):
        try:
            return work(service, home, **settings), n_waits
        except AnswersPending:
            service.end_all()
    raise AssertionError("answers are waited for without end")


def tables(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted((home / "tables").rglob("*.parquet"))}


def rejects(home: Path) -> list[Reject]:
    with rl_stages.open_workspace(home) as workspace:
        return workspace.tables.read_rejects(Shard(workspace, PARTITION).key(Suitability.asset))


def open_batches(home: Path) -> int:
    with rl_stages.open_workspace(home) as workspace:
        return len(BatchTable(workspace.ledger).open())


def custom_ids(service: BatchService) -> list[str]:
    return [line["custom_id"] for name in service.batches for line in service.lines(name)]


@pytest.mark.parametrize(("work", "n_waits"), [(vote, 1), (draft, 2)])
def test_a_batch_run_makes_the_tables_of_a_live_run_and_pays_every_answer_once(
    service: BatchService, tmp_path: Path, work: Work, n_waits: int
) -> None:
    for name in ("live", "batches"):
        rl_stages.prepare(tmp_path / name, N_ROWS) if work is vote else take_in(tmp_path / name, MockSource(N_ROWS))
    work(service, tmp_path / "live", batch="off")
    paid, n_live = service.paid.copy(), service.n_live
    service.paid.clear()
    assert finish(service, tmp_path / "batches", work)[1] == n_waits  # what depends on an answer waits for it
    assert service.paid == paid
    assert set(service.paid.values()) == {1}
    assert service.n_live == n_live
    assert tables(tmp_path / "batches") == tables(tmp_path / "live")
    assert not open_batches(tmp_path / "batches")


def test_a_line_is_what_a_live_call_sends_with_its_images(service: BatchService, tmp_path: Path) -> None:
    for name in ("live", "batches"):
        take_in(tmp_path / name, MockSource(3))
    draft(service, tmp_path / "live", batch="off")
    finish(service, tmp_path / "batches", draft)
    lines = [line for name in service.batches for line in service.lines(name)]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    bodies = sorted(json.dumps(line["body"], sort_keys=True) for line in lines)
    assert bodies == sorted(json.dumps(body, sort_keys=True) for body in service.live_bodies)
    assert all("data:image/png;base64," in body for body in bodies)


def test_nothing_is_written_and_nothing_sent_again_while_answers_are_waited_for(
    service: BatchService, home: Path
) -> None:
    before = tables(home)
    for _ in range(3):
        with pytest.raises(AnswersPending, match=rf"12 rows wait for answers of a batch at {service.url}, within 24"):
            vote(service, home)
    assert tables(home) == before
    assert (len(service.batches), len(custom_ids(service))) == (1, N_ROWS)


def test_answers_cost_half_and_are_in_the_budget_pool(service: BatchService, home: Path) -> None:
    def judged() -> StageReport:
        with rl_stages.open_workspace(home) as workspace:
            settings = EndpointSettings(kind="openai", base_url=service.url, model="mock", batch="openai", **PRICES)
            judge = OpenAIPolicy.on_ledger(settings, workspace.images, workspace.ledger, purse="votes")
            try:
                return Shard(workspace, PARTITION).materialize(Suitability(judge=judge, n_votes=N_VOTES))
            finally:
                spent.append(judge.budget_pool.spent)

    spent: list[Any] = []
    with pytest.raises(AnswersPending):
        judged()
    service.end_all()
    usd = 0.5 * N_ROWS * (100 + 20 * N_VOTES) / 1000
    assert judged().usage.cost_usd == pytest.approx(usd)
    assert [each.cost_usd for each in spent] == [0, pytest.approx(usd)]
    with rl_stages.open_workspace(home) as workspace:
        totals = workspace.ledger.totals()["policy"]
    assert (totals.calls, totals.cost_usd) == (N_ROWS * N_VOTES, pytest.approx(usd))


@pytest.mark.parametrize("status", ["completed", "expired", "cancelled"])
def test_requests_that_a_batch_ends_without_go_into_the_next_one(
    service: BatchService, home: Path, status: str
) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    some = {"completed": [], "expired": [expired]}.get(status, [])
    service.end(
        "batch_0",
        status,
        answers=lambda lines: [*map(answered, lines[:5])],
        errors=lambda lines: [make(line) for make in some for line in lines[5:9]],
    )
    with pytest.raises(AnswersPending, match="7 rows"):
        vote(service, home)
    first, second = (service.lines(name) for name in service.batches)
    assert [line["body"] for line in second] == [line["body"] for line in first[5:]]
    report, n_waits = finish(service, home)
    assert (report.n_out, n_waits, set(service.paid.values())) == (N_ROWS, 1, {1})


def test_a_batch_that_is_refused_says_why_and_is_sent_again_by_the_next_run(service: BatchService, home: Path) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    service.end("batch_0", "failed", answers=lambda _: [], error={"message": "Enqueued token limit reached."})
    with pytest.raises(PolicyUnavailable, match=r"batch_0 was refused, and is not charged: Enqueued token limit"):
        vote(service, home)
    assert finish(service, home)[0].n_out == N_ROWS
    assert (len(service.batches), set(service.paid.values())) == (2, {1})


def test_a_request_that_is_wrong_in_itself_is_a_reject_with_its_sentence(service: BatchService, home: Path) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    service.end("batch_0", answers=lambda lines: [*map(answered, lines[1:])], errors=lambda lines: [refused(lines[0])])
    report = vote(service, home)
    assert (report.n_out, report.reasons, len(service.batches)) == (N_ROWS - 1, {"policy_failed": 1}, 1)
    assert "this request is wrong in itself" in rejects(home)[0].evidence
    assert finish(service, home)[0].n_out == N_ROWS, "it may pass, and is asked again by the next run"


def test_a_request_that_the_service_fails_again_and_again_is_a_reject(service: BatchService, home: Path) -> None:
    for _ in range(2):
        with pytest.raises(AnswersPending):
            vote(service, home, max_retries=1)
        last = [*service.batches][-1]
        service.end(
            last,
            answers=lambda lines: [*map(answered, lines[1:])],
            errors=lambda lines: [refused(lines[0], 500, "overloaded")],
        )
    assert vote(service, home, max_retries=1).reasons == {"policy_failed": 1}
    assert [len(service.lines(name)) for name in service.batches] == [N_ROWS, 1]


def test_lines_of_answers_without_a_use_are_ignored(service: BatchService, home: Path) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)

    def answers(lines: list[Line]) -> list[Line]:
        again = {**answered(lines[0]), "response": {"status_code": 500, "body": None}}
        stranger = {**answered(lines[1]), "custom_id": lines[1]["custom_id"] + "0000"}
        return [answered(lines[0]), again, stranger, *map(answered, lines[2:])]

    name = service.lines("batch_0")[1]["custom_id"]
    odd = [b"", b"null", b"[]", b"{", b'{"custom_id": ["%s"]}', b'{"custom_id": "%s", "response', b"\xff%s"]
    service.end("batch_0", answers=answers, extra=b"\n".join(line.replace(b"%s", name.encode()) for line in odd))
    with pytest.raises(AnswersPending, match="1 rows"):
        vote(service, home)
    assert [line["body"] for line in service.lines("batch_1")] == [service.lines("batch_0")[1]["body"]]


def test_fewer_answers_than_asked_for_are_kept_and_the_rest_is_asked_for(service: BatchService, home: Path) -> None:
    def first_two(lines: list[Line]) -> list[Line]:
        made = [answered(line) for line in lines]
        for line in made:
            del line["response"]["body"]["choices"][2:]
        return made

    with pytest.raises(AnswersPending):
        vote(service, home)
    service.end("batch_0", answers=first_two)
    report, _ = finish(service, home)
    assert report.n_out == N_ROWS
    assert {line["body"]["n"] for line in service.lines("batch_1")} == {N_VOTES - 2}
    assert (service.paid.total(), set(service.paid.values())) == (N_ROWS * N_VOTES, {1})


def test_what_waits_in_a_batch_is_not_asked_live_and_is_read_when_batches_are_off(
    service: BatchService, home: Path
) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    with pytest.raises(AnswersPending, match="12 rows wait for answers of a batch"):
        vote(service, home, batch="off")
    service.end("batch_0", answers=lambda lines: [*map(answered, lines[:-1])])
    assert service.n_live == 0
    assert vote(service, home, batch="off").n_out == N_ROWS
    assert service.n_live == 1, "the request that the batch ended without"
    assert set(service.paid.values()) == {1}


def test_two_processes_put_a_request_into_one_batch(service: BatchService, home: Path) -> None:
    with rl_stages.open_workspace(home) as workspace:
        other = Workspace.from_environment({"DARKROOM_HOME": str(home)})
        with other:
            keys = [call.key for call in _calls_of(service, home, workspace)]
            assert other.ledger.claim(keys[:N_VOTES]) == [True] * N_VOTES  # those of one row
            with pytest.raises(AnswersPending, match="12 rows"):
                vote(service, home)
        assert len(custom_ids(service)) == N_ROWS - 1


def _calls_of(service: BatchService, home: Path, workspace: Workspace) -> list[Any]:
    """The calls of the work, as a live run of a copy records them, row by row."""
    twin = home.with_name("twin")
    rl_stages.prepare(twin, N_ROWS)
    vote(service, twin, batch="off")
    with rl_stages.open_workspace(twin) as other:
        rows = other.ledger._recorded(True)  # type: ignore[arg-type]
    return sorted(rows, key=lambda call: (json.dumps(call.request["messages"]), call.request["seed"]))


def test_files_stay_within_the_limits_of_the_service(
    service: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_queue, "MAX_REQUESTS", 5)
    with pytest.raises(AnswersPending):
        vote(service, home)
    assert sorted(len(service.lines(name)) for name in service.batches) == [2, 5, 5]
    assert finish(service, home)[0].n_out == N_ROWS
    service.files.clear()
    rl_stages.prepare(home.with_name("by_bytes"), N_ROWS)
    monkeypatch.setattr(batch_queue, "MAX_BYTES", 9_000)
    with pytest.raises(AnswersPending):
        vote(service, home.with_name("by_bytes"))
    sizes = [len(content) for content in service.files.values()]
    assert (max(sizes) <= 9_000, len(sizes) > 2) == (True, True)


def test_a_request_that_no_file_takes_is_a_reject(
    service: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_queue, "MAX_BYTES", 900)
    assert vote(service, home).reasons == {"policy_failed": N_ROWS}
    assert "and a batch takes 700" in rejects(home)[0].evidence


@pytest.mark.parametrize("path", ["POST /files", "POST /batches"])
def test_a_service_without_batches_is_said_in_one_line_and_asked_live_afterwards(
    service: BatchService, home: Path, path: str
) -> None:
    service.fails[path] = 404
    with pytest.raises(PolicyUnavailable, match=r"no batch could be sent: HTTP 404.*DARKROOM_POLICY_BATCH=off"):
        vote(service, home)
    assert vote(service, home, batch="off").n_out == N_ROWS
    assert not open_batches(home)


def test_a_batch_of_which_nothing_was_heard_is_found_and_not_sent_again(service: BatchService, home: Path) -> None:
    def hang_up() -> None:
        raise ConnectionAbortedError

    service.after["POST /batches"] = hang_up
    with pytest.raises(PolicyUnavailable, match="no batch could be sent"):
        vote(service, home)
    service.after.clear()
    report, n_waits = finish(service, home)
    assert (report.n_out, n_waits, len(service.batches), service.n_live) == (N_ROWS, 1, 1, 0)


def test_a_batch_that_was_never_made_is_made_when_the_service_had_time_to_list_it(
    service: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.fails["POST /batches"] = 502
    with pytest.raises(PolicyUnavailable, match="HTTP 502"):
        vote(service, home)
    service.fails.clear()
    with pytest.raises(AnswersPending):
        vote(service, home)
    assert not service.batches
    monkeypatch.setattr(batch_queue, "SETTLED_SECONDS", 0.0)
    report, n_waits = finish(service, home)
    assert (report.n_out, n_waits, len(service.batches)) == (N_ROWS, 1, 1)


@pytest.mark.parametrize("status", [500, 401])
def test_a_service_that_cannot_be_asked_loses_nothing(service: BatchService, home: Path, status: int) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    service.end_all()
    output = service.batches["batch_0"]["output_file_id"]
    for path in ("GET /batches/batch_0", f"GET /files/{output}/content"):
        service.fails = {path: status}
        with pytest.raises(PolicyUnavailable, match=f"batch batch_0 cannot be read: HTTP {status}"):
            vote(service, home)
    service.fails.clear()
    assert vote(service, home).n_out == N_ROWS
    assert (len(service.batches), set(service.paid.values())) == (1, {1})


def test_a_batch_that_the_service_forgot_is_free_when_its_files_are_gone(
    service: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AnswersPending):
        vote(service, home)
    service.fails["GET /batches/batch_0"] = 404
    with pytest.raises(PolicyUnavailable, match="batch batch_0 cannot be read: HTTP 404"):
        vote(service, home)
    monkeypatch.setattr(batch_queue, "GONE_SECONDS", 0.0)
    assert vote(service, home, batch="off").n_out == N_ROWS
    assert not open_batches(home)


VLLM = """#!{python}
import argparse, json, sys
sys.path.insert(0, {root!r})
from tests.batch_service import answered
words = argparse.ArgumentParser()
words.add_argument("command", choices=["run-batch"])
words.add_argument("--model")
words.add_argument("-i")
words.add_argument("-o")
given = words.parse_args()
with open(given.i) as requests, open(given.o, "w") as answers:
    for line in map(json.loads, requests):
        assert line["body"]["model"] == given.model
        print(json.dumps(answered(line)), file=answers)
"""


def run_command(error: AnswersPending, folder: Path) -> None:
    """The command that a user is told, with a program that does what `vllm run-batch` does."""
    program = folder / "bin" / "vllm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(VLLM.format(python=sys.executable, root=os.getcwd()))
    program.chmod(0o755)
    command = str(error).split("`")[1]
    path = f"{program.parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", command], check=True, env={**os.environ, "PATH": path})


@pytest.fixture
def no_server() -> BatchService:
    return BatchService(url="http://127.0.0.1:9/v1")


def folder_of(home: Path) -> Path:
    return home / "batches" / "mock"


def test_a_folder_needs_no_server_and_its_command_makes_the_tables_of_a_live_run(
    service: BatchService, no_server: BatchService, home: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        AnswersPending, match=r"12 rows wait for answers of `cat .* && vllm run-batch --model mock"
    ) as ran:
        vote(no_server, home, batch="folder", **PRICES)
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder", **PRICES)
    assert len(list(folder_of(home).glob("requests-*.jsonl"))) == 1
    run_command(ran.value, tmp_path)
    report = vote(no_server, home, batch="folder", **PRICES)
    rl_stages.prepare(tmp_path / "live", N_ROWS)
    assert vote(service, tmp_path / "live", batch="off", **PRICES).usage == report.usage, "at the usual price"
    assert tables(home) == tables(tmp_path / "live")
    assert not list(folder_of(home).glob("requests-*.jsonl"))


def test_answers_are_read_from_a_folder_as_they_come(no_server: BatchService, home: Path) -> None:
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder")
    (file,) = folder_of(home).glob("requests-*.jsonl")
    lines = [answered(json.loads(line)) for line in file.read_text().splitlines()]
    failed = {**lines[0], "response": {"status_code": 500, "body": None}, "error": {"error": {"message": "no memory"}}}
    half = "\n".join(map(json.dumps, [failed, *lines[1:6], lines[6]]))[:-20]
    (folder_of(home) / "answers-1.jsonl").write_text(half)
    with pytest.raises(AnswersPending, match="7 rows"):
        vote(no_server, home, batch="folder")
    requests = sorted(folder_of(home).glob("requests-*.jsonl"), key=lambda path: path.stat().st_mtime)
    assert [len(path.read_text().splitlines()) for path in requests] == [N_ROWS, 1], "the one that failed is new"
    requests[0].unlink()
    with pytest.raises(AnswersPending, match="7 rows"):
        vote(no_server, home, batch="folder")
    left = [path for path in folder_of(home).glob("requests-*.jsonl") if path != requests[1]]
    assert [len(path.read_text().splitlines()) for path in left] == [6], "what a deleted file asked is asked again"


def test_each_file_of_answers_is_read_once_for_all_batches_that_wait(
    no_server: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_queue, "MAX_REQUESTS", 5)
    monkeypatch.setattr(batch_queue, "_LINES_AT_ONCE", 3)
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder")
    requests = [file.read_text().splitlines() for file in folder_of(home).glob("requests-*.jsonl")]
    assert sorted(map(len, requests)) == [2, 5, 5]
    mixed = [json.dumps(answered(json.loads(line))) for lines in zip_longest(*requests) for line in filter(None, lines)]
    for number, lines in enumerate((mixed[:7], mixed[7:])):
        (folder_of(home) / f"answers-{number}.jsonl").write_text("\n".join(lines))
    n_reads: Counter[str] = Counter()
    opened = Path.open

    def counted(path: Path, *words: Any, **options: Any) -> Any:
        n_reads[path.name] += path.name.startswith("answers")
        return opened(path, *words, **options)

    monkeypatch.setattr(Path, "open", counted)
    with rl_stages.open_workspace(home) as workspace:
        batches = BatchTable(workspace.ledger).open()
    assert asyncio.run(batch_queue.ended_batches(batches, [])) == {batch.batch for batch in batches}
    assert (+n_reads).total() == 2
    assert vote(no_server, home, batch="folder").n_out == N_ROWS
    assert (+n_reads).total() == 4
    assert not open_batches(home)


def test_a_batch_without_an_answer_has_not_ended(no_server: BatchService, home: Path) -> None:
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder")
    (folder_of(home) / "answers-1.jsonl").write_text('{"custom_id": "another-0"}\n')
    with rl_stages.open_workspace(home) as workspace:
        assert asyncio.run(batch_queue.ended_batches(BatchTable(workspace.ledger).open(), [])) == set()


def test_a_folder_of_another_machine_is_not_taken_for_a_deleted_one(
    no_server: BatchService, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder")
    (file,) = folder_of(home).glob("requests-*.jsonl")
    file.rename(file.with_name("elsewhere"))
    monkeypatch.setattr(batch_queue, "gethostname", lambda: "another")
    with pytest.raises(AnswersPending):
        vote(no_server, home, batch="folder")
    assert (open_batches(home), list(folder_of(home).glob("requests-*.jsonl"))) == (1, [])


def test_a_prompt_that_is_no_utf_8_is_a_reject_as_in_a_live_run(service: BatchService, tmp_path: Path) -> None:
    for name in ("live", "batches"):
        take_in(tmp_path / name, MockSource(2))
    live = draft(service, tmp_path / "live", batch="off", extra_body={"odd": "\ud800"})
    report, n_waits = finish(service, tmp_path / "batches", draft, extra_body={"odd": "\ud800"})
    assert (report.reasons, n_waits) == (live.reasons, 0)
