"""What is launched and where: a program of ``train/`` with its command line, and the launcher's settings.

Settings come from the environment (``DARKROOM_LAUNCH…``); the launchpad changes them for one run.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import dagster as dg

from darkroom.assets.launching.jobs import LaunchError
from darkroom.pipelines.storage.settings import EnvironmentSettings, setting

Value = str | int | float | bool | Path | Sequence[str] | None
Kind = Literal["local", "ray", "slurm", "kubernetes"]
PREFIX = "DARKROOM_LAUNCH"


class LauncherResource(EnvironmentSettings, dg.ConfigurableResource):
    """Where training runs.

    ``local``: on this machine. ``ray``: as a job of a Ray cluster. ``slurm`` and ``kubernetes``: the job is written
    beside the output for you to submit; the run waits for its messages. All but ``local`` need the workspace
    (DARKROOM_HOME) at the same path on every machine.
    """

    kind: Kind = setting("", "local", description="`local`, `ray`, `slurm` or `kubernetes`.")
    python: str = setting(
        "_PYTHON", sys.executable, description="Python with Darkroom on the other machine; default: this Python."
    )
    folder: str = setting(
        "_FOLDER",
        str(Path(__file__).resolve().parents[2]),
        description="Folder in which the program starts on the other machine; default: this checkout.",
    )
    n_processes: int = setting(
        "_PROCESSES", 1, ge=1, description="Processes of `accelerate launch`, one per GPU; 1: without it."
    )
    n_gpus: int = setting("_GPUS", 0, ge=0, description="GPUs to request from a cluster.")
    url: str = setting("_URL", "http://127.0.0.1:8265", description="Ray: URL of the dashboard, which accepts jobs.")
    options: str = setting(
        "_OPTIONS", "", description="Slurm: more options of sbatch, as in `--partition=a100 --time=24:00:00`."
    )
    submit: bool = setting("_SUBMIT", False, description="Slurm: run sbatch here; otherwise you submit the script.")
    image: str = setting("_IMAGE", "", description="Kubernetes: container image with Darkroom.")
    claim: str = setting("_CLAIM", "", description="Kubernetes: volume claim that holds DARKROOM_HOME.")
    wait_hours: float = setting(
        "_WAIT_HOURS",
        168.0,
        ge=0,
        description="Hours to wait for a job that you submit; 0: the run ends at once and prints the command.",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings of ``DARKROOM_LAUNCH…``. Raises ``LaunchError``, naming the variable that is wrong."""
        return cls.read(environment, PREFIX, error=LaunchError)


@dataclass(frozen=True, slots=True)
class Program:
    """A program of ``train/`` with its arguments, and the folder that it writes."""

    module: str
    output: Path
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, module: str, output: Path, flags: Mapping[str, Value]) -> Self:
        """``flags`` by name as in Python: ``{"max_steps": 3, "lora": 0, "resume": True}``.

        None, False and "" omit a flag; True passes its name alone; a list repeats it for each value.
        """
        words = [word for name, value in {**flags, "output": output}.items() for word in flag_words(name, value)]
        return cls(module, output, tuple(words))

    def command(self, python: str, *, n_processes: int = 1) -> list[str]:
        """The command line, by ``python -m`` or, for several processes, by ``accelerate launch``."""
        if n_processes == 1:
            return [python, "-m", self.module, *self.arguments]
        accelerate = (
            *("-m", "accelerate.commands.launch"),
            *("--num_processes", str(n_processes)),
            *("--num_machines", "1"),
            *("--mixed_precision", "no"),  # the program itself chooses bfloat16 on a GPU
            *("--dynamo_backend", "no"),
            *("--main_process_port", "0"),  # any that is free
            "--module",
        )
        return [python, *accelerate, self.module, *self.arguments]

    @property
    def name(self) -> str:
        """Short, for schedulers: ``darkroom-sft``."""
        return f"darkroom-{self.module.rpartition('.')[2]}"


def flag_words(name: str, value: Value) -> list[str]:
    """An option as words of a command line."""
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False or value == "":
        return []
    if value is True:
        return [flag]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [word for element in value for word in (flag, element)]
    return [flag, str(value)]
