"""A backup of a campaign, taken while its server runs, and its restoration.

    DEST/journal.sqlite                 every submission as received, and all tasks
    DEST/label_studio.sqlite3           the server's database; of a PostgreSQL: label_studio.dump (pg_dump -Fc)
    DEST/studio/                        the server's other files
    DEST/admin.json, secret_key, …      account, keys and address, and the campaign's rules

A backup is whole or not at all. No sync runs meanwhile: a task that only the server's copy knew would be handed out
twice. Images are not included: they are in the image store. Whoever can read a backup can log in as the administrator.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import sqlalchemy as sa

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.server_files import SQLITE, parse_url, select_database
from darkroom.annotation.rounds.journal import Journal

JOURNAL, DUMP = "journal.sqlite", "label_studio.dump"
FILES = ("admin.json", "secret_key", "address.json", "campaign.yaml", "service.env", "acts.txt")
PATIENCE_SECONDS = 600.0
"""Longest wait for a sync to end."""
Say = Callable[[str], None]


def back_up(folder: Path, target: Path, *, say: Say = print) -> None:
    """Copy the campaign in ``folder`` (``<home>/annotation``) to ``target``. Raises ``AnnotationError``."""
    if target.exists():
        raise AnnotationError(f"{target} exists already; name a new folder for each backup")
    if not (folder / JOURNAL).exists():
        raise AnnotationError(f"{folder} has no journal: there is nothing to back up yet")
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True, mode=0o700)
    with Journal(folder) as journal, ExitStack() as stack:
        _wait_for_sync(journal, stack, say)
        _copy_sqlite(folder / JOURNAL, part / JOURNAL)
        _copy_database(folder, part)
        shutil.copytree(folder / "studio", part / "studio", ignore=shutil.ignore_patterns(f"{SQLITE}*"))
    for name in FILES:
        if (folder / name).exists():
            shutil.copy2(folder / name, part / name)
    part.rename(target)


def restore(source: Path, folder: Path, *, postgres: str | None = None) -> None:
    """Fill ``folder``, which has no campaign yet, from a backup; a PostgreSQL's needs ``postgres``, an empty database,
    filled in one transaction. The journal comes last: a killed restore is repeated. Raises ``AnnotationError``."""
    if not (source / JOURNAL).exists():
        raise AnnotationError(f"{source} is no backup of a campaign: it has no {JOURNAL}")
    if (folder / JOURNAL).exists():
        raise AnnotationError(f"{folder} has a campaign already; restore into another DARKROOM_HOME, or move it away")
    is_dump = (source / DUMP).exists()
    if is_dump != (postgres is not None):
        with_database = "of a PostgreSQL: name an empty database with --postgres" if is_dump else "of SQLite"
        raise AnnotationError(f"{source} is a backup {with_database}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (source / name).exists():
            shutil.copy2(source / name, folder / name)
    shutil.copytree(source / "studio", folder / "studio", dirs_exist_ok=True)
    if postgres is None:
        shutil.copy2(source / SQLITE, folder / "studio" / SQLITE)
    else:
        _run("pg_restore", "--no-owner", "--exit-on-error", "--single-transaction", str(source / DUMP), url=postgres)
        (folder / "postgres.url").unlink(missing_ok=True)
        (folder / "studio" / SQLITE).unlink(missing_ok=True)
        select_database(folder, postgres)
    _copy_sqlite(source / JOURNAL, folder / JOURNAL)


def _wait_for_sync(journal: Journal, stack: ExitStack, say: Say) -> None:
    start, is_waiting = time.monotonic(), False
    while True:
        try:
            return stack.enter_context(journal.lock())
        except AnnotationError:
            if time.monotonic() > start + PATIENCE_SECONDS:
                raise
        if not is_waiting:
            say("waiting for a sync to end …")
        is_waiting = True
        time.sleep(0.2)  # `sync --every` pauses between two of them


def _copy_database(folder: Path, part: Path) -> None:
    url = select_database(folder, None)
    if url is not None:
        _run("pg_dump", "-Fc", "-f", str(part / DUMP), url=url)
    elif (folder / "studio" / SQLITE).exists():
        _copy_sqlite(folder / "studio" / SQLITE, part / SQLITE)
    else:
        raise AnnotationError(f"the server of {folder} is not here; take the backup where `darkroom annotate up` runs")


def _copy_sqlite(source: Path, target: Path) -> None:
    """A consistent copy of a database that is in use."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(source, timeout=60)) as ours, closing(sqlite3.connect(part)) as copy:
        ours.backup(copy)
    part.chmod(0o600)
    part.rename(target)


def _run(*command: str, url: str) -> None:
    """Run one of PostgreSQL's programs, with the password in its environment: every user of a machine sees commands."""
    if shutil.which(command[0]) is None:
        raise AnnotationError(f"{command[0]} is not installed (Debian: postgresql-client)")
    database = parse_url(url)
    address = sa.URL.create(**{**database._asdict(), "drivername": "postgresql", "password": None})
    command = (*command, "-d", address.render_as_string(hide_password=False))
    environment = os.environ | ({"PGPASSWORD": database.password} if database.password else {})
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise AnnotationError(f"{command[0]} failed: {process.stderr.strip()[-500:]}")
