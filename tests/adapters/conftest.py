"""Other programs run against the services, each in an environment of its own: `make adapters`, which may take long."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from darkroom.train.evaluate import evaluate
from darkroom.train.evaluation.settings import EvaluationSettings
from tests.adapters.coloured_signs import Model
from tests.adapters.vllm_server import run
from tests.json_endpoint import endpoint
from tests.served import served

ROOT = Path(__file__).resolve().parents[2]

Install = Callable[..., Path]
Evaluate = Callable[[str, Path], list[tuple[str, bool]]]
"""From a bundled benchmark's name and files to answers and verdicts, in the order of the questions."""


@pytest.fixture(scope="session")
def install() -> Install:
    """Makes an environment, or takes one that is there; returns its Python.

    torch first and with pip, as ``make install`` does: a CPU build where one lies on the machine. What is ``left_out``
    is not installed although something requires it.
    """

    def begin(name: str, *requirements: str, left_out: tuple[str, ...] = (), torch: bool = True) -> Path:
        folder = Path(os.environ.get("DARKROOM_ENVIRONMENTS", ROOT / "data" / "environments")) / name
        python, complete = folder / "bin" / "python", folder / "complete"
        if not complete.exists():
            uv, overrides = Path(sys.executable).with_name("uv"), folder / "overrides.txt"
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            locked = (ROOT / "requirements.lock").read_text().split()
            first = [line for line in locked if torch and line.startswith("torch==")]
            if first:
                subprocess.run([python, "-m", "pip", "install", "--quiet", *first], check=True)
            overrides.write_text("\n".join([*first, *(f"{package}; sys_platform == 'never'" for package in left_out)]))
            command = [uv, "pip", "install", "--quiet", "--python", python, "--override", overrides, *requirements]
            subprocess.run(command, check=True)
            complete.touch()
        return python

    return begin


@pytest.fixture(scope="session")
def trained_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the demo's datasets, and its tiny model after the demo's SFT."""
    folder = tmp_path_factory.mktemp("home")
    rows, tiny = str(folder / "datasets" / "street_signs" / "train"), str(folder / "checkpoints" / "tiny")
    sft = ("--model", tiny, "--output", str(folder / "checkpoints" / "sft"), "--max-steps", "300")
    schedule = ("--batch-size", "8", "--learning-rate", "0.003", "--max-pixels", "3136")
    for command in (
        ("darkroom.pipelines.demo.street_sign_datasets",),
        ("darkroom.train.tiny", tiny, "--dataset", rows, "--digits", "--spread", "0.1"),
        ("darkroom.train.sft", "--dataset", rows, *sft, *schedule),
    ):
        done = run(folder, "python", "-m", *command)
        assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture
def colours() -> Iterator[str]:
    """The address of the model that names the colours of signs."""
    with endpoint(Model) as url:
        yield url


@pytest.fixture
def agent(colours: str, tmp_path: Path) -> Iterator[str]:
    """The address of that model with its tools."""
    home = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}
    with served("agent", "serve", "--url", colours, "--model", "colours", env=home) as (_, address):
        yield address


@pytest.fixture
def evaluated(colours: str, tmp_path: Path) -> Evaluate:
    """Evaluates that model by Darkroom itself."""

    def begin(benchmark: str, files: Path) -> list[tuple[str, bool]]:
        settings = EvaluationSettings(
            output=tmp_path / f"report_{benchmark}",
            url=colours,
            model="colours",
            benchmarks=((benchmark, files),),
            home=tmp_path / "home_of_ours",
        )
        report = evaluate(settings)
        rows = pq.read_table(report.folder / "rollouts.parquet", columns=["answer", "right"]).to_pylist()
        return [(row["answer"], row["right"]) for row in rows]

    return begin
