"""SFT in two processes of one machine, as a launcher starts them for two GPUs: the same steps as in one.

`accelerate launch` starts processes for GPUs through `torch.distributed.run`; without a GPU it needs MPI for more than
one, so that this test takes the launcher behind it.
"""

import json
import subprocess
import sys

import pytest

from pipelines.publishing.parquet_shards import write_trajectories
from pipelines.storage.images import ImageStore
from tests.train.conftest import mixed_pairs

pytestmark = pytest.mark.e2e
PHASES = [{"name": "first", "max_steps": 2}, {"name": "second", "max_steps": 2, "learning_rate": 1e-3}]


def program(*words, processes=0):
    launcher = ["-m", "torch.distributed.run", f"--nproc_per_node={processes}"] if processes else []
    command = [sys.executable, *launcher, "-m", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1500)


def test_two_processes_train_the_steps_of_one(tmp_path):
    store = ImageStore(str(tmp_path / "store"))
    write_trajectories(tmp_path / "mixed", mixed_pairs(store), store=store)
    given = ["--dataset", tmp_path / "mixed", "--model", tmp_path / "tiny", "--batch-size", 4]
    given += ["--learning-rate", 1e-2, "--phases", json.dumps(PHASES)]
    assert program("train.tiny", tmp_path / "tiny", *given[:2], "--arch", "qwen3_vl").returncode == 0
    made = {}
    for processes in (0, 2):
        output = tmp_path / f"out{processes}"
        done = program("train.sft", *given, "--output", output, processes=processes)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("phase 1 of 2") == 1
        made[processes] = json.loads((output / "training.json").read_text())["steps"]
    assert [step["loss"] for step in made[2]] == pytest.approx([step["loss"] for step in made[0]], rel=1e-3)
    refused = program("train.sft", *given, "--output", tmp_path / "no", "--per-device", 4, processes=2)
    assert refused.returncode == 1
    assert "a batch of 4 rows is not 4 per device x 2 processes = 8 rows" in refused.stderr
