"""The Dagster home of a workspace: its settings, its shards, and runs that killed processes left open."""

import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg

from darkroom.assets.clusters.worker import is_abandoned
from darkroom.assets.dagster_home.history import open_instance
from darkroom.assets.graph.partitions import update_partitions
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.workspace import Workspace

_FORMER_SETTINGS = {
    "23105d8e797fafa896bfcd199e2e19dabd625bcd18e654d1f0b3e4dceb170cc6",
    "821c91598672f7e4cee1c239abc581c4c034abb6257fd510f9794fa686524f24",
    "a411b76cd3f484cf1a1590e4f66db61e607a360e0e6d8a96e4b09d38646cc222",
}
"""Digests of the files that Darkroom wrote before: without what notices and repeats lost runs, and without other
places than this machine."""
_FORMER_MODULES = {
    re.compile(r"\b(?:darkroom\.)?assets\.runs\.places\b"): "darkroom.assets.clusters.run_launcher",
    re.compile(r"\b(?:darkroom\.)?assets\.runs\.worker\b"): "darkroom.assets.clusters.worker",
}
"""Modules that settings of earlier versions name, also where a user has edited them."""


def prepare_dagster_home(workspace: Workspace) -> Path:
    """Make ``<home>/dagster`` with the bundled ``dagster.yaml``; ``DAGSTER_HOME`` points there unless it is set.

    In settings of an earlier version, modules get their present names.
    """
    settings = _dagster_settings(workspace)
    with storage_errors(str(settings.parent)):
        settings.parent.mkdir(parents=True, exist_ok=True)
        if not settings.exists() or digest_bytes(settings.read_bytes()) in _FORMER_SETTINGS:
            settings.write_text((files("darkroom.assets") / "dagster.yaml").read_text())
        else:
            _rename_modules(settings)
    os.environ["DAGSTER_HOME"] = str(settings.parent)
    return settings.parent


def _rename_modules(settings: Path) -> None:
    before = text = settings.read_text()
    for former, module in _FORMER_MODULES.items():
        text = former.sub(module, text)
    if text != before:
        write_whole(settings, text, mode=settings.stat().st_mode & 0o777)


def refresh_dagster(workspace: Workspace) -> None:
    """Close abandoned runs and make the sources' shards partitions, where there is a Dagster instance."""
    if _dagster_settings(workspace).exists():
        prepare_dagster_home(workspace)
        with open_instance() as instance:
            close_abandoned_runs(instance)
            update_partitions(workspace, instance)


def _dagster_settings(workspace: Workspace) -> Path:
    return Path(os.environ.get("DAGSTER_HOME") or workspace.local / "dagster").absolute() / "dagster.yaml"


def close_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Mark runs as failed whose process on this machine is gone, as run monitoring does where a daemon runs.

    Returns their number.
    """
    open_runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]))
    abandoned = [run for run in open_runs if is_abandoned(run)]
    for run in abandoned:
        instance.report_run_failed(run, "its process was killed; run the job again, finished work is kept")
    return len(abandoned)


def keep_from_ctrl_c(instance: dg.DagsterInstance) -> None:
    """Let the processes that copy a step's output end with the step, and not by Ctrl-C.

    Dagster copies what steps print to the terminal and into its logs, with two processes for each stream. They are in
    the command's process group: Ctrl-C reached them as well, and those that are Python left a traceback each between
    the command's own lines.
    """
    manager = instance.compute_log_manager
    capture: Callable[[Sequence[str]], AbstractContextManager[Any]] = manager.capture_logs

    @contextmanager
    def capture_logs(log_key: Sequence[str]) -> Iterator[Any]:
        with ExitStack() as captured:
            with _blocked(signal.SIGINT):  # which processes inherit that are started meanwhile
                context = captured.enter_context(capture(log_key))
            yield context

    setattr(manager, "capture_logs", capture_logs)  # noqa: B010  # mypy allows no assignment to a method


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
