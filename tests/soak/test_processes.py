"""SFT in two processes of one machine, as the docs start them for two GPUs: the same steps as in one.

They start in a folder with a package `train` of the user's own, which `accelerate launch -m` would take for ours.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.storage.images import ImageStore
from tests.train.conftest import mixed_pairs

pytestmark = pytest.mark.e2e
PHASES = [{"name": "first", "max_steps": 2}, {"name": "second", "max_steps": 2, "learning_rate": 1e-3}]


PROGRAMS = Path(sys.executable).parent
ONE_MACHINE = ("--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", 0)
"""What `accelerate config` asks for. Without a GPU, `--multi_gpu` starts processes that speak over gloo."""


@pytest.fixture
def train(tmp_path):
    """Runs a program of `darkroom train`, in the folder of a user."""
    (tmp_path / "user" / "train").mkdir(parents=True)
    (tmp_path / "user" / "train" / "__init__.py").write_text("raise SystemExit('the user\\'s own package')\n")

    def run(*words, processes=0):
        launcher = [PROGRAMS / "accelerate", "launch", "--multi_gpu", "--num_processes", processes, *ONE_MACHINE]
        command = [*([*launcher, "--no_python"] if processes else []), PROGRAMS / "darkroom", "train", *words]
        return subprocess.run(
            list(map(str, command)), cwd=tmp_path / "user", capture_output=True, text=True, timeout=1500
        )

    return run


def test_two_processes_train_the_steps_of_one(tmp_path, train):
    store = ImageStore(str(tmp_path / "store"))
    write_trajectories(tmp_path / "mixed", mixed_pairs(store), store=store)
    given = ["--dataset", tmp_path / "mixed", "--model", tmp_path / "tiny", "--batch-size", 4]
    given += ["--learning-rate", 1e-2, "--phases", json.dumps(PHASES)]
    assert train("tiny", tmp_path / "tiny", *given[:2], "--arch", "qwen3_vl").returncode == 0
    made = {}
    for processes in (0, 2):
        output = tmp_path / f"out{processes}"
        done = train("sft", *given, "--output", output, processes=processes)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("phase 1 of 2") == 1
        made[processes] = json.loads((output / "training.json").read_text())["steps"]
    assert [step["loss"] for step in made[2]] == pytest.approx([step["loss"] for step in made[0]], rel=1e-3)
    refused = train("sft", *given, "--output", tmp_path / "no", "--per-device", 4, processes=2)
    assert refused.returncode == 1
    assert "a batch of 4 rows is not 4 per device x 2 processes = 8 rows" in refused.stderr
