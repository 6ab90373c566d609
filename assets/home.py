"""DAGSTER_HOME: below the workspace, absolute, with telemetry off; and the runs that a killed process left open."""

import os
import socket
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import dagster as dg

from pipelines.workspace import Workspace

PID_TAG, HOST_TAG = "darkroom/pid", "darkroom/host"


def prepare_dagster_home(workspace: Workspace) -> Path:
    """Makes ``<home>/dagster`` with the shipped ``dagster.yaml``; ``DAGSTER_HOME`` points there unless it is set."""
    home = Path(os.environ.get("DAGSTER_HOME") or workspace.home / "dagster").absolute()
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text((files("assets") / "dagster.yaml").read_text())
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def process_tags() -> dict[str, str]:
    """Tags by which a later process can tell that this one is gone."""
    return {PID_TAG: str(os.getpid()), HOST_TAG: socket.gethostname()}


def close_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Marks runs failed whose process on this machine is gone; Dagster itself never notices. Returns their number."""
    open_runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]))
    abandoned = [run for run in open_runs if _is_abandoned(run.tags)]
    for run in abandoned:
        instance.report_run_failed(run, "its process was killed; run it again, finished work is kept")
    return len(abandoned)


def _is_abandoned(tags: Mapping[str, str]) -> bool:
    if tags.get(HOST_TAG) != socket.gethostname() or PID_TAG not in tags:
        return False
    try:
        os.kill(int(tags[PID_TAG]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
