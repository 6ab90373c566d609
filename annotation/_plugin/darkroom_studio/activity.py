"""What the server counts of people's requests: seconds of work on a task, and wrong passwords.

A request for a task (its page, a draft, a submission) ends a stretch of work that began with the one before; of a
longer pause, ``LONGEST_PAUSE`` counts. The time that pages report is not used: whoever writes it, writes a payment.
"""

from __future__ import annotations

import time
from typing import Any

from darkroom_studio.access import wait_after
from django.db import connection

WORK, FAILURES = "darkroom_work", "darkroom_failed_logins"
LONGEST_PAUSE = 300
"""Seconds."""


def create_tables() -> None:
    """Create the tables in either database (idempotent)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"create table if not exists {WORK} (task_id integer not null, user_id integer not null, "
            "seconds double precision not null, last_at double precision not null, primary key (task_id, user_id))"
        )
        cursor.execute(
            f"create table if not exists {FAILURES} (name varchar(400) not null primary key, n integer not null, "
            "last_at double precision not null)"
        )


def work_on(task_id: int, user: Any) -> float:
    """Note that a person works on a task now; returns the seconds of work on it so far."""
    pause = f"excluded.last_at - {WORK}.last_at"
    counted = f"case when {pause} > {LONGEST_PAUSE} then {LONGEST_PAUSE} when {pause} < 0 then 0 else {pause} end"
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into {WORK} values (%s, %s, 0, %s) on conflict (task_id, user_id) do update "
            f"set seconds = {WORK}.seconds + {counted}, last_at = excluded.last_at returning seconds",
            [task_id, user.id, time.time()],
        )
        return round(float(cursor.fetchone()[0]), 1)


def login_wait(name: str) -> int:
    """Seconds until another password may be tried under this name; 0: now."""
    with connection.cursor() as cursor:
        cursor.execute(f"select n, last_at from {FAILURES} where name = %s", [name])
        n, last_at = cursor.fetchone() or (0, 0.0)
    return wait_after(n, time.time() - last_at)


def note_login(name: str, *, succeeded: bool) -> None:
    """Count a wrong password; a right one ends the count."""
    with connection.cursor() as cursor:
        if succeeded:
            cursor.execute(f"delete from {FAILURES} where name = %s", [name])
            return
        cursor.execute(
            f"insert into {FAILURES} values (%s, 1, %s) on conflict (name) do update "
            f"set n = {FAILURES}.n + 1, last_at = excluded.last_at",
            [name, time.time()],
        )
