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
from dagster_shared.check.functions import CheckError
from sqlalchemy.exc import SQLAlchemyError

from darkroom.pipelines.storage.atomic_write import one_at_a_time
from darkroom.pipelines.storage.storage_errors import sqlite_mend
from darkroom.sandbox.errors import UserError

DATABASE_ERRORS: tuple[type[Exception], ...] = (SQLAlchemyError,)
"""Errors of Dagster's history while its server is away."""
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
    """Dagster's history could not be opened: the reason, and what to do."""


def open_instance() -> dg.DagsterInstance:
    """Open the instance of ``DAGSTER_HOME``. Raises ``InstanceUnavailable`` if its database cannot be opened.

    Two processes that create its SQLite files at once leave tables without a version, or two versions of them.
    """
    home = Path(os.environ["DAGSTER_HOME"])
    try:
        with one_at_a_time(home / _LOCK), _one_line_of_retries():
            return dg.DagsterInstance.from_config(str(home))
    except ImportError as error:
        raise InstanceUnavailable(
            f"dagster.yaml needs a package that is missing ({error}): pip install 'darkroom-toolkit[postgres]'"
        ) from error
    except _UNAVAILABLE as error:
        raise InstanceUnavailable(_repair(home, error)) from error


@contextmanager
def _one_line_of_retries() -> Iterator[None]:
    """Print one line at the first try to reach PostgreSQL, instead of SQLAlchemy's whole message at every one."""
    messages: list[str] = []

    def hold_back(record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith("Retrying failed database connection"):
            return True
        if not messages:
            messages.append("Dagster's database does not answer: trying again for some seconds")
            print(messages[0], file=sys.stderr, flush=True)
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
    reason = _first_line(error.__cause__ or error.__context__ or error)
    if "postgres" in settings.read_text():
        return f"Dagster's history cannot be opened ({reason}): check DAGSTER_POSTGRES_URL, and that the server is up"
    if (repair := sqlite_mend(reason)) is not None:
        return f"Dagster's history in {home} cannot be used ({reason}). To do: {repair}"
    folders = " ".join(str(home / name) for name in _DATABASES)
    return (
        f"Dagster's history is broken ({reason}). To do: rm -r {folders}, then run again; past runs are lost, "
        "rows, datasets and the ledger are kept"
    )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
