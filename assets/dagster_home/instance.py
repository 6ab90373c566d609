"""Dagster in the home of a workspace: settings, the database of runs and events, shards, runs of killed processes."""

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any

import dagster as dg
import yaml
from alembic.util.exc import CommandError
from dagster_shared.check.functions import CheckError
from sqlalchemy import Connection, Engine, StaticPool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from darkroom.assets.clusters.worker import is_abandoned
from darkroom.assets.graph.partitions import update_partitions
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.atomic_write import one_at_a_time, write_whole
from darkroom.pipelines.storage.storage_errors import sqlite_mend, storage_errors
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

_UNREADABLE: tuple[type[Exception], ...] = (dg.DagsterInvalidConfigError, yaml.YAMLError, CheckError, CommandError)
_LOCK = ".opening.lock"
_DATABASES = ("history", "schedules")
"""Dagster's own folders with SQLite files."""
_INDEX, _BUSY_SECONDS, _MOST_OPEN = "index", 60, 3
"""The file of all runs' events and the wait for a busy file, both as in Dagster; the number of files that stay open."""
_FORMER_SETTINGS = {
    "23105d8e797fafa896bfcd199e2e19dabd625bcd18e654d1f0b3e4dceb170cc6",
    "821c91598672f7e4cee1c239abc581c4c034abb6257fd510f9794fa686524f24",
    "a411b76cd3f484cf1a1590e4f66db61e607a360e0e6d8a96e4b09d38646cc222",
}
"""Digests of files that Darkroom wrote before: without what repeats lost runs, without other places than this one."""
_FORMER_MODULES = {
    re.compile(r"\b(?:darkroom\.)?assets\.runs\.places\b"): "darkroom.assets.clusters.run_launcher",
    re.compile(r"\b(?:darkroom\.)?assets\.runs\.worker\b"): "darkroom.assets.clusters.worker",
}
"""Modules that settings of earlier versions name, also where a user has edited them."""


def database_errors() -> tuple[type[Exception], ...]:
    """Errors of Dagster's history while its server is away; those of PostgreSQL once its package is in use."""
    postgres = sys.modules.get("dagster_postgres.utils")
    return (SQLAlchemyError, postgres.DagsterPostgresException) if postgres else (SQLAlchemyError,)


def prepare_dagster_home(workspace: Workspace) -> Path:
    """Make ``<home>/dagster`` with the bundled ``dagster.yaml``; ``DAGSTER_HOME`` points there unless it is set. In
    settings of an earlier version, modules get their present names."""
    settings = _dagster_settings(workspace)
    with storage_errors(str(settings.parent)):
        settings.parent.mkdir(parents=True, exist_ok=True)
        if not settings.exists() or digest_bytes(settings.read_bytes()) in _FORMER_SETTINGS:
            settings.write_text((files("darkroom.assets") / "dagster.yaml").read_text())
        else:
            text = before = settings.read_text()
            for former, module in _FORMER_MODULES.items():
                text = former.sub(module, text)
            if text != before:
                write_whole(settings, text, mode=settings.stat().st_mode & 0o777)
    os.environ["DAGSTER_HOME"] = str(settings.parent)
    return settings.parent


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
    """Mark runs as failed whose process here is gone, as a daemon's run monitoring does. Returns their number."""
    open_runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]))
    abandoned = [run for run in open_runs if is_abandoned(run)]
    for run in abandoned:
        instance.report_run_failed(run, "its process was killed; run the job again, finished work is kept")
    return len(abandoned)


def keep_from_ctrl_c(instance: dg.DagsterInstance) -> None:
    """Let the two processes that copy each stream of a step's output end with the step. They are in the command's
    process group: by Ctrl-C those that are Python left a traceback each between the command's own lines."""
    manager = instance.compute_log_manager
    capture: Callable[[Sequence[str]], AbstractContextManager[Any]] = manager.capture_logs

    @contextmanager
    def capture_logs(log_key: Sequence[str]) -> Iterator[Any]:
        with ExitStack() as captured:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:  # processes that are started meanwhile inherit it
                context = captured.enter_context(capture(log_key))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield context

    setattr(manager, "capture_logs", capture_logs)  # noqa: B010  # mypy allows no assignment to a method


def keep_files_open(instance: dg.DagsterInstance) -> None:
    """Let the history in SQLite keep its files open, which halves an event's CPU time: Dagster opens and closes a file
    for every event, and compiles its statements anew. Databases on servers stay as they are."""
    log: Any = instance.event_log_storage
    if not hasattr(log, "conn_string_for_shard"):
        return
    connect, lock, engines = log.run_connection, Lock(), dict[str, Engine]()
    options = {"timeout": _BUSY_SECONDS, "check_same_thread": False}

    @contextmanager
    def kept(shard: str) -> Iterator[Connection]:
        with lock:
            if shard not in engines:
                with connect(shard):  # creates its tables
                    url = log.conn_string_for_shard(shard)
                while len(engines) >= _MOST_OPEN:
                    engines.pop(next(iter(engines))).dispose()
                engines[shard] = create_engine(url, poolclass=StaticPool, connect_args=options)
            with engines[shard].begin() as connection:
                yield connection

    log.run_connection, log.index_connection = kept, partial(kept, _INDEX)


def open_instance() -> dg.DagsterInstance:
    """Open the instance of ``DAGSTER_HOME``. Raises ``UserError`` if its database cannot be opened. Two
    processes that create its SQLite files at once leave tables without a version, or two versions of them."""
    home = Path(os.environ["DAGSTER_HOME"])
    try:
        with one_at_a_time(home / _LOCK), _one_line_of_retries():
            return dg.DagsterInstance.from_config(str(home))
    except ImportError as error:
        mend = "pip install 'darkroom-toolkit[postgres]'"
        raise UserError(f"dagster.yaml needs a package that is missing ({error}): {mend}") from error
    except _UNREADABLE + database_errors() as error:
        raise UserError(_repair(home, error)) from error


@contextmanager
def _one_line_of_retries() -> Iterator[None]:
    """Print one line at the first try to reach PostgreSQL, instead of SQLAlchemy's whole message at every one."""
    say_once = cache(partial(print, file=sys.stderr, flush=True))

    def hold_back(record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith("Retrying failed database connection"):
            return True
        say_once("Dagster's database does not answer: trying again for some seconds")
        return False

    root = logging.getLogger()
    root.addFilter(hold_back)
    try:
        yield
    finally:
        root.removeFilter(hold_back)


def _repair(home: Path, error: Exception) -> str:
    settings = home / "dagster.yaml"
    if isinstance(error, yaml.YAMLError) or not isinstance(yaml.safe_load(settings.read_text()) or {}, dict):
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        return f"Dagster's settings are no YAML mapping{line}: correct {settings}, or delete it"
    if isinstance(error, dg.DagsterInvalidConfigError):
        message = "\n".join(failure.message for failure in error.errors or ()) or str(error)
        if missing := re.search(r'environment variable "(\w+)" which is not set', message):
            return f"{settings} takes {missing[1]} from the environment, where it is not set: set it"
        message = message.partition(" Expected: ")[0].splitlines()[0]  # what is expected fills a page
        return f"Dagster's settings are wrong ({message}): correct {settings}, or delete it"
    origin = error.__cause__ or error.__context__ or error
    reason = next(iter(str(origin).strip().splitlines()), type(origin).__name__)
    if "postgres" in settings.read_text():
        return f"Dagster's history cannot be opened ({reason}): check DAGSTER_POSTGRES_URL, and that the server is up"
    if (repair := sqlite_mend(reason)) is not None:
        return f"Dagster's history in {home} cannot be used ({reason}). To do: {repair}"
    folders = " ".join(str(home / name) for name in _DATABASES)
    kept = "past runs are lost, rows, datasets and the ledger are kept"
    return f"Dagster's history is broken ({reason}). To do: rm -r {folders}, then run again; {kept}"
