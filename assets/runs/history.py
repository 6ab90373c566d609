"""Dagster's instance in DAGSTER_HOME: the database of runs and events, created by one process at a time."""

import os
from pathlib import Path

import dagster as dg
import yaml
from alembic.util.exc import CommandError
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from dagster_shared.check.functions import CheckError
from sqlalchemy.exc import SQLAlchemyError

from assets.runs.event_log import KeptSqliteStorage
from pipelines.storage.atomic_write import one_at_a_time
from pipelines.storage.storage_errors import sqlite_mend
from sandbox.errors import UserError

DATABASE_ERRORS: tuple[type[Exception], ...] = (SQLAlchemyError,)
"""Of Dagster's history, while its server is away."""
try:
    from dagster_postgres.utils import DagsterPostgresException

    DATABASE_ERRORS += (DagsterPostgresException,)
except ImportError:
    pass  # without the extra there is no PostgreSQL to be unavailable

_UNREADABLE = (dg.DagsterInvalidConfigError, yaml.YAMLError)
"""For a ``dagster.yaml`` that is wrong."""
_UNAVAILABLE: tuple[type[Exception], ...] = (*_UNREADABLE, CheckError, CommandError, *DATABASE_ERRORS)
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
        with one_at_a_time(home / _LOCK):
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


def _what_to_do(home: Path, error: Exception) -> str:
    cause = error.__cause__ or error.__context__ or error
    reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    if "postgres" in (home / "dagster.yaml").read_text():
        return f"Dagster's history cannot be opened ({reason}): check DAGSTER_POSTGRES_URL, and that the server is up"
    if isinstance(error, _UNREADABLE):
        return f"Dagster's history cannot be opened ({reason}): correct {home / 'dagster.yaml'}, or delete it"
    if (mend := sqlite_mend(reason)) is not None:
        return f"Dagster's history in {home} cannot be used ({reason}). To do: {mend}"
    folders = " ".join(str(home / name) for name in _DATABASES)
    return (
        f"Dagster's history is broken ({reason}). To do: rm -r {folders}, then run again; past runs are lost, "
        "rows, datasets and the ledger are kept"
    )
