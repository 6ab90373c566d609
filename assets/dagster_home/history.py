"""Dagster's instance in DAGSTER_HOME: the database of runs and events, created by one process at a time."""

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import yaml
from alembic.util.exc import CommandError
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from dagster_shared.check.functions import CheckError
from sqlalchemy.exc import SQLAlchemyError

from darkroom.assets.dagster_home.event_log import KeptSqliteStorage
from darkroom.pipelines.storage.atomic_write import one_at_a_time
from darkroom.pipelines.storage.storage_errors import sqlite_mend
from darkroom.sandbox.errors import UserError

DATABASE_ERRORS: tuple[type[Exception], ...] = (SQLAlchemyError,)
"""Of Dagster's history, while its server is away."""
try:
    from dagster_postgres.utils import DagsterPostgresException

    DATABASE_ERRORS += (DagsterPostgresException,)
except ImportError:
    pass  # without the extra there is no PostgreSQL to be unavailable

_UNAVAILABLE: tuple[type[Exception], ...] = (
    dg.DagsterInvalidConfigError,
    yaml.YAMLError,
    CheckError,
    CommandError,
    *DATABASE_ERRORS,
)
_LOCK = ".opening.lock"
_DATABASES = ("history", "schedules")
"""Dagster's own folders with SQLite files."""


class InstanceUnavailable(UserError):
    """Dagster's history could not be opened: why, and what to do."""


def open_instance() -> dg.DagsterInstance:
    """The instance of ``DAGSTER_HOME``. Raises ``InstanceUnavailable`` where its database cannot be opened.

    Two processes that create its SQLite files at once leave tables without a version, or two versions of them.
    """
    home = Path(os.environ["DAGSTER_HOME"])
    try:
        with one_at_a_time(home / _LOCK), _one_line_of_retries():
            return dg.DagsterInstance.from_ref(_kept_open(InstanceRef.from_dir(str(home))))
    except ImportError as error:
        raise InstanceUnavailable(
            f"dagster.yaml needs a package that is missing ({error}): pip install 'darkroom-toolkit[postgres]'"
        ) from error
    except _UNAVAILABLE as error:
        raise InstanceUnavailable(_what_to_do(home, error)) from error


def _kept_open(ref: InstanceRef) -> InstanceRef:
    """With ``KeptSqliteStorage`` where the settings have Dagster's own."""
    storage = ref.storage_data
    if storage is None or storage.class_name != DagsterSqliteStorage.__name__:
        return ref
    kept = ConfigurableClassData(KeptSqliteStorage.__module__, KeptSqliteStorage.__name__, storage.config_yaml)
    return ref._replace(storage_data=kept)


@contextmanager
def _one_line_of_retries() -> Iterator[None]:
    """Dagster logs SQLAlchemy's whole message at every try to reach PostgreSQL: one line instead, at the first."""
    shown: list[str] = []

    def hold_back(record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith("Retrying failed database connection"):
            return True
        if not shown:
            shown.append("Dagster's database does not answer: trying again for some seconds")
            print(shown[0], file=sys.stderr, flush=True)
        return False

    root = logging.getLogger()
    root.addFilter(hold_back)
    try:
        yield
    finally:
        root.removeFilter(hold_back)


def _what_to_do(home: Path, error: Exception) -> str:
    settings = home / "dagster.yaml"
    if isinstance(error, yaml.YAMLError) or not isinstance(yaml.safe_load(settings.read_text()) or {}, dict):
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        return f"Dagster's settings are no YAML mapping{place}: correct {settings}, or delete it"
    if isinstance(error, dg.DagsterInvalidConfigError):
        found = "\n".join(failure.message for failure in error.errors or ()) or str(error)
        if missing := re.search(r'environment variable "(\w+)" which is not set', found):
            return f"{settings} takes {missing[1]} from the environment, where it is not set: set it"
        found = found.partition(" Expected: ")[0].splitlines()[0]  # what is expected fills a page
        return f"Dagster's settings are wrong ({found}): correct {settings}, or delete it"
    reason = _first_line(error.__cause__ or error.__context__ or error)
    if "postgres" in settings.read_text():
        return f"Dagster's history cannot be opened ({reason}): check DAGSTER_POSTGRES_URL, and that the server is up"
    if (mend := sqlite_mend(reason)) is not None:
        return f"Dagster's history in {home} cannot be used ({reason}). To do: {mend}"
    folders = " ".join(str(home / name) for name in _DATABASES)
    return (
        f"Dagster's history is broken ({reason}). To do: rm -r {folders}, then run again; past runs are lost, "
        "rows, datasets and the ledger are kept"
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
