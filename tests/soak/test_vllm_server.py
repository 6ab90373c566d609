"""GRPO with ``--engine vllm_server`` through TRL's own client, against a server process that speaks vLLM's interface.

Replaced are the engine behind the interface, and of the client the check for CUDA and the NCCL broadcast
(``vllm_without_gpu.py``). Everything else is TRL's: requests, retries, image features, weight updates, corrections.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.storage.images import ImageStore
from tests.ports import free_port
from tests.train.conftest import sign, sum_without_image

GRPO = ["--method", "thyme", "--engine", "vllm_server", "--generations", "4", "--batch-size", "4", "--max-steps", "2"]
GRPO += ["--max-tokens", "400", "--learning-rate", "1e-2", "--save-steps", "1", "--seed", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One run, one whose server fails at the second step and that resumes, one in two processes."""
    from darkroom.train.tiny import build, dataset_texts

    folder = tmp_path_factory.mktemp("vllm")
    store = ImageStore(str(folder / "store"))
    write_trajectories(folder / "rows", [sign(store, 0), blue_without_image(), sign(store, 2)], store=store)
    build(folder / "tiny", texts=dataset_texts(folder / "rows"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = [sys.executable, "-m", "tests.soak.vllm_server", str(folder / "tiny"), str(folder / "server.jsonl")]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            port = int(process.stdout.readline())
            runs = [
                run(folder, "one", port),
                run(folder, "down", port, "/down"),
                run(folder, "down", port, "/down"),
                run(folder, "two", port, processes=2),
            ]
            (folder / "runs.json").write_text(json.dumps(runs))
            command = [sys.executable, "-m", "tests.e2e.ranks", str(folder / "runs.json")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        finally:
            process.kill()  # it does not always end on SIGTERM
    (folder / "told.txt").write_text(done.stdout + done.stderr)
    statuses = [json.loads(line)["statuses"] for line in done.stdout.splitlines() if line.startswith('{"statuses"')]
    assert statuses == [[0], [1], [0], [0, 0]], done.stdout + done.stderr
    return folder


def blue_without_image():
    asked, made = sum_without_image(7)
    return replace(asked, answer="blue"), replace(made, answer="blue")


def run(folder, name, port, path="", **launch):
    words = ["--dataset", folder / "rows", "--model", folder / "tiny", *GRPO, "--output", folder / name]
    words += ["--set", f"trainer.vllm_server_base_url=http://127.0.0.1:{port}{path}"]
    words += ["--set", f"trainer.vllm_group_port={free_port()}"]
    launch["vllm"] = str(folder / f"{name}.sampling.jsonl")
    return {"program": "grpo", "words": [str(word) for word in words], "home": str(folder / f"home_{name}"), **launch}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps(folder, name):
    return json.loads((folder / name / "training.json").read_text())["steps"]


def test_rollouts_are_those_of_the_server(folder):
    made = steps(folder, "one")
    assert len(made) == 2
    assert all(step["broken_rate"] == 0.0 for step in made)
    assert any(step["tool_calls"] > 0 for step in made)
    assert any(step["images_shown"] > 0 for step in made)
    assert made[0]["grad_norm"] > 0  # the weights of the second step are others


def test_code_is_requested_at_temperature_zero_and_every_request_has_a_seed(folder):
    log = lines(folder / "server.jsonl")
    requests = [line for line in log if line["path"] == "generate"]
    assert {(line["temperature"] == 0.0, *line["stop"]) for line in requests} == {(False, "<code>"), (True, "</code>")}
    _, second_run, *_ = [place for place, line in enumerate(log) if line["path"] == "connect"]
    seeds = [line["seed"] for line in log[:second_run] if line["path"] == "generate"]
    assert len(set(seeds)) == len(seeds) > 8
    assert any(line["images"] == 2 for line in requests)  # the prompt's and the crop


def test_the_weights_of_the_step_before_have_arrived(folder):
    """At a learning rate of 1e-2 the weights of the step before give other log-probabilities."""
    updates = [line for line in lines(folder / "server.jsonl") if line["path"] == "update"]
    assert updates
    assert all(line["missing"] == [] and line["n_tensors"] > 10 for line in updates)
    for name in ("one", "two"):
        differences = [
            line["sampling/sampling_logp_difference/mean"] for line in lines(folder / f"{name}.sampling.jsonl")
        ]
        assert len(differences) >= 2
        assert max(differences) < 0.01  # vision tokens are forbidden there, not here: 0.005


def test_a_server_that_fails_ends_training_with_one_line_and_a_checkpoint(folder):
    told = (folder / "told.txt").read_text()
    assert told.count("error: the vLLM server at ") == 1
    assert "gives no rollouts: Exception: Request failed: 400" in told
    assert "Traceback" not in told
    one, down = (steps(folder, name) for name in ("one", "down"))
    for expected, resumed in zip(one, down, strict=True):
        assert resumed["reward"] == pytest.approx(expected["reward"])
        assert resumed["loss"] == pytest.approx(expected["loss"], abs=1e-4)


def test_two_processes_share_the_server(folder):
    assert len(steps(folder, "two")) == 2
