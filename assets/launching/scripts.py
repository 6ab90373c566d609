"""Jobs that are handed over, as texts: a script for Slurm's sbatch, a manifest for Kubernetes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from assets.launching.program import shell_line


def slurm_script(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    name: str,
    folder: str,
    log: Path,
    n_gpus: int,
    options: str,
) -> str:
    """A script for ``sbatch``. The program takes the shell's place, so that it is what Slurm signals."""
    asked = [
        f"--job-name={name}",
        f"--output={log}",
        "--nodes=1",
        "--ntasks=1",
        *([f"--gpus-per-node={n_gpus}"] if n_gpus else []),
        *shlex.split(options),
    ]
    exports = [f"export {variable}={shlex.quote(value)}" for variable, value in environment.items()]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {shlex.quote(option)}" for option in asked),
            "set -eu",
            *exports,
            f"cd {shell_line([folder])}",
            f"exec {shell_line(command)}",
            "",
        ]
    )


def kubernetes_manifest(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    name: str,
    folder: str,
    image: str,
    claim: str,
    home: Path,
    n_gpus: int,
) -> str:
    """A ``batch/v1`` Job that runs once, with the volume claim mounted where the workspace is here."""
    container: dict[str, Any] = {
        "name": "train",
        "image": image,
        "command": list(command),
        "workingDir": folder,
        "env": [{"name": variable, "value": value} for variable, value in environment.items()],
        "volumeMounts": [{"name": "home", "mountPath": str(home)}],
    }
    if n_gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": n_gpus}}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": claim}}],
    }
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{name}-"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }
    return yaml.safe_dump(manifest, sort_keys=False)
