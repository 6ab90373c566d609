"""Where training runs: settings from the environment (``DARKROOM_LAUNCH…``); the launchpad changes them for one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field, ValidationError

from assets.launching.job import LaunchFault

Kind = Literal["local", "ray", "slurm", "kubernetes"]

SETTINGS = {
    "PYTHON": "python",
    "FOLDER": "folder",
    "PROCESSES": "n_processes",
    "GPUS": "n_gpus",
    "URL": "url",
    "OPTIONS": "options",
    "SUBMIT": "submit",
    "IMAGE": "image",
    "CLAIM": "claim",
    "WAIT_HOURS": "wait_hours",
}
"""Endings of variables, and the fields that they set."""


class LauncherResource(dg.ConfigurableResource):
    """Where training runs.

    ``local``: on this machine. ``ray``: as a job of a Ray cluster. ``slurm`` and ``kubernetes``: the job is written
    beside the output and handed over; the run waits until whoever starts it reports back. All but ``local`` need the
    workspace (DARKROOM_HOME) at the same path on every machine.
    """

    kind: Kind = Field(default="local", description="local, ray, slurm or kubernetes (DARKROOM_LAUNCH).")
    python: str = Field(
        default=sys.executable, description="The Python with Darkroom in it, where the program runs (…_PYTHON)."
    )
    folder: str = Field(
        default=str(Path(__file__).resolve().parents[2]),
        description="Where the program is started on the other machine; default: this checkout (…_FOLDER).",
    )
    n_processes: int = Field(
        default=1, ge=1, description="Processes of `accelerate launch`, one for each GPU; 1: none (…_PROCESSES)."
    )
    n_gpus: int = Field(default=0, ge=0, description="GPUs that a cluster is asked for (…_GPUS).")
    url: str = Field(default="http://127.0.0.1:8265", description="Ray's dashboard, which takes jobs (…_URL).")
    options: str = Field(
        default="", description="More options of sbatch, as in `--partition=a100 --time=24:00:00` (…_OPTIONS)."
    )
    submit: bool = Field(
        default=False, description="Run sbatch here; otherwise somebody starts the written job (…_SUBMIT)."
    )
    image: str = Field(default="", description="Kubernetes: the container image with Darkroom in it (…_IMAGE).")
    claim: str = Field(default="", description="Kubernetes: the volume claim that holds DARKROOM_HOME (…_CLAIM).")
    wait_hours: float = Field(
        default=168.0,
        ge=0,
        description="How long a run waits for a job that was handed over; 0: it ends at once with the command "
        "(…_WAIT_HOURS).",
    )

    @classmethod
    def from_settings(cls, environment: Mapping[str, str] = os.environ) -> LauncherResource:
        """What the environment says. Raises ``LaunchFault`` with the variable that is wrong."""
        given: dict[str, Any] = {
            field: environment[f"DARKROOM_LAUNCH_{ending}"]
            for ending, field in SETTINGS.items()
            if environment.get(f"DARKROOM_LAUNCH_{ending}")
        }
        if environment.get("DARKROOM_LAUNCH"):
            given["kind"] = environment["DARKROOM_LAUNCH"]
        try:
            return cls.model_validate(given)
        except ValidationError as fault:
            first = fault.errors()[0]
            ending = next((e for e, field in SETTINGS.items() if field == first["loc"][0]), "")
            name = f"DARKROOM_LAUNCH_{ending}".rstrip("_")
            raise LaunchFault(f"{name} is {first['input']!r}: {first['msg']}") from fault
