"""GRPO with a real vLLM on this machine's CPU, in the environment of `darkroom train environment vllm`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.adapters.vllm_server import ROOT, clean_environment, run
from tests.ports import free_port

NEAR, FAR = 0.01, 0.1
"""Differences of log-probabilities: what rounding explains, and what it does not."""


@pytest.fixture(scope="module")
def program(trained_home: Path) -> Path:
    """Its `darkroom`."""
    done = run(trained_home, "darkroom", "train", "environment", "vllm", "--device", "cpu")
    assert done.returncode == 0, done.stderr[-4000:]
    return Path(done.stdout.strip())


def environment(home: Path) -> dict[str, str]:
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": str(ROOT)}
    return clean_environment(home) | own


def output_of(home: Path, *command: str | Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_colocated_it_samples_code_whose_images_it_is_shown(trained_home: Path, program: Path) -> None:
    data, checkpoints = trained_home / "datasets" / "street_signs" / "train", trained_home / "checkpoints"
    output = checkpoints / "grpo"
    rollouts = ("--method", "thyme", "--generations", "4", "--batch-size", "16", "--max-tokens", "160")
    schedule = ("--max-steps", "2", "--max-pixels", "3136", "--seed", "3", "--repetition-penalty", "1")
    paths = ("--dataset", data, "--model", checkpoints / "sft", "--output", output)
    engine = ("--engine", "vllm_colocate", "--set", "trainer.vllm_max_model_length=2048")
    output_of(trained_home, program, "train", "grpo", *paths, *rollouts, *schedule, *engine)
    steps = json.loads((output / "training.json").read_text())["steps"]
    assert len(steps) == 2
    assert all(step["broken_rate"] == 0.0 and step["tool_calls"] > 0 and step["images_shown"] > 0 for step in steps)
    assert all(step["sampling/sampling_logp_difference/mean"] < NEAR for step in steps)


def test_colocated_each_step_is_sampled_with_the_weights_of_the_step_before(trained_home: Path, program: Path) -> None:
    arguments = (trained_home / "checkpoints" / "sft", trained_home / "datasets" / "street_signs" / "train")
    printed = output_of(
        trained_home, program.with_name("python"), "-m", "tests.adapters.vllm_agreement", "colocate", *arguments
    )
    differences = re.findall(r"step (\d), its (rollouts sampled|weights changed): ([\d.e-]+)", printed)
    assert [(step, what) for step, what, _ in differences] == [
        ("1", "rollouts sampled"),
        ("1", "weights changed"),
        ("2", "rollouts sampled"),
        ("2", "weights changed"),
    ]
    first, changed, second, _ = (float(difference) for *_, difference in differences)
    assert max(first, second) < NEAR < FAR < changed


@pytest.fixture(scope="module")
def server(trained_home: Path, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`vllm serve` with the flags of docs/grpo.md, but for the weight transfer, which needs NCCL."""
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log.txt"
    model, context = str(trained_home / "checkpoints" / "sft"), ("--max-model-len", "4096")
    on_cpu = ("--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill")
    for_trl = ("--enable-scale-out", "--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1")
    address = ("--host", "127.0.0.1", "--port", str(port))
    command = [str(program.with_name("vllm")), "serve", model, *address, *context, *on_cpu, *for_trl]
    settings = environment(trained_home) | {"VLLM_SERVER_DEV_MODE": "1"}
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, env=settings, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            while not answers(f"{url}/health"):
                assert process.poll() is None, log.read_text()[-4000:]
                time.sleep(1)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=10).status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.fixture(scope="module")
def turns(trained_home: Path, program: Path, server: str) -> list[dict[str, Any]]:
    """Four questions with an image, each with the seeds 1, 1 and 2, as GRPO-ATS requests them through TRL's client."""
    arguments = (trained_home / "checkpoints" / "sft", trained_home / "datasets" / "street_signs" / "train", server)
    printed = output_of(
        trained_home, program.with_name("python"), "-m", "tests.adapters.vllm_agreement", "segments", *arguments
    )
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def test_served_code_is_what_the_model_finds_most_likely_and_the_rest_is_sampled(turns: list[dict[str, Any]]) -> None:
    requests = [request for turn in turns for request in turn["requests"]]
    assert {(request["greedy"], request["until"]) for request in requests} == {(False, "<code>"), (True, "</code>")}
    greedy = [request for request in requests if request["greedy"]]
    sampled = [request for request in requests if not request["greedy"]]
    assert all(request["n_most_likely"] == request["n_tokens"] > 0 for request in greedy)
    assert any(request["n_most_likely"] < request["n_tokens"] for request in sampled)


def test_served_a_seed_gives_the_same_turn_again_and_another_seed_another(turns: list[dict[str, Any]]) -> None:
    texts = [turn["text"] for turn in turns]
    assert texts[0::3] == texts[1::3]
    assert texts[0::3] != texts[2::3]
