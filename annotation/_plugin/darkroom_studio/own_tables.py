"""Tables of the plug-in in Label Studio's database.

Checkers' own answers, settled before they see a record: the first one of a person on a task stays. Label Studio saves
whole tasks and deletes drafts, and would lose an answer in either. Seconds of work on a task: a request for it (its
page, a draft, a submission) ends a stretch of work that began with the one before; of a longer pause,
``LONGEST_PAUSE`` counts. The time that pages report is not used: whoever writes it, writes a payment. Wrong passwords,
by account and address. Practice images of campaigns, and people's work on them (``practice.py``). What administrators
did: a row per request that changes something, and one per command; rows are only added.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from darkroom_studio.access import role_of, wait_after
from darkroom_studio.identity import user_of
from darkroom_studio.languages import language_of
from darkroom_studio.validation import (
    N_IMAGES,
    N_PASSING,
    PRACTISING,
    answer_problem,
    is_blind_first,
    read_body,
    served_task,
    without_key,
)
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Task

ANSWERS, WORK, FAILURES = "darkroom_blind_answers", "darkroom_work", "darkroom_failed_logins"
PRACTICE_SETS, PRACTICE, AUDIT = "darkroom_practice_sets", "darkroom_practice", "darkroom_audit"
GUARDS = {
    True: f"trigger if not exists {AUDIT}_{{act}} before {{act}} on {AUDIT} begin select raise(abort, 'no'); end",
    False: f"or replace rule {AUDIT}_{{act}} as on {{act}} to {AUDIT} do instead nothing",
}
"""Of the audit log, whose rows stay, in SQLite and in PostgreSQL."""
LONGEST_PAUSE, FORGOTTEN = 300, 86_400
"""Seconds: of a pause that counts, and after which a wrong password is forgotten."""


def create_tables() -> None:
    """Create the tables in either database (idempotent)."""
    is_sqlite = connection.vendor == "sqlite"
    number = "integer primary key autoincrement" if is_sqlite else "bigserial primary key"
    for statement in Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split(";\n")[:-1]:
        rows(statement.replace("{number}", number))
    for act in ("update", "delete"):
        rows(f"create {GUARDS[is_sqlite].format(act=act)}")


def rows(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def _row(statement: str, *values: Any) -> Any:
    """The first row of a statement; None without any."""
    return next(iter(rows(statement, *values)), None)


def settled_answer(task_id: int, user: Any) -> str:
    """The answer of a person to a task; empty before they gave one."""
    row = _row(f"select answer from {ANSWERS} where task_id = %s and user_id = %s", task_id, user.id)
    return str(row[0]) if row else ""


def settle(task_id: int, user: Any, answer: str) -> str:
    """Store a first answer; returns the one that counts."""
    now, first = datetime.now(UTC).isoformat(timespec="seconds"), "on conflict (task_id, user_id) do nothing"
    _row(f"insert into {ANSWERS} values (%s, %s, %s, %s) {first}", task_id, user.id, answer, now)
    return settled_answer(task_id, user)


def task_for(user: Any, task: dict[str, Any]) -> dict[str, Any]:
    """A task of the API as this person gets it."""
    task = without_key(task)
    gate = task["data"].get("gate") if isinstance(task.get("data"), dict) else None
    return served_task(task, settled_answer(task["id"], user)) if is_blind_first(gate) else task


def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Settle an answer. The access table admits only who was given the task; no form of another site sends JSON."""
    user, task = user_of(request), Task.objects.filter(id=pk).only("id", "data").first()
    if request.method != "POST" or user is None or task is None or not is_blind_first(task.data.get("gate")):
        return JsonResponse({"detail": "This task asks for no answer beforehand."}, status=404)
    try:
        sent = read_body(request.body, request.encoding)["answer"]
    except (ValueError, KeyError, TypeError):
        sent = None
    if problem := answer_problem(sent, language_of(request)):
        return JsonResponse({"detail": problem}, status=400)
    return JsonResponse({"answer": settle(pk, user, sent.strip())})


def counted_pause(pause: str) -> str:
    """The part of a pause that counts as work, in SQL."""
    return f"case when {pause} > {LONGEST_PAUSE} then {LONGEST_PAUSE} when {pause} < 0 then 0 else {pause} end"


def work_on(task_id: int, user: Any) -> float:
    """Note that a person works on a task now; returns the seconds of work on it so far."""
    counted = counted_pause(f"excluded.last_at - {WORK}.last_at")
    begun = f"insert into {WORK} values (%s, %s, 0, %s) on conflict (task_id, user_id) do update "
    more = f"set seconds = {WORK}.seconds + {counted}, last_at = excluded.last_at returning seconds"
    return round(float(_row(begun + more, task_id, user.id, time.time())[0]), 1)


def login_wait(name: str) -> int:
    """Seconds until another password may be tried under this name; 0: now."""
    n, last_at = _row(f"select n, last_at from {FAILURES} where name = %s", name) or (0, 0.0)
    return wait_after(n, time.time() - last_at)


def note_login(name: str, *, succeeded: bool) -> None:
    """Count a wrong password; a right one ends the count."""
    if succeeded:
        _row(f"delete from {FAILURES} where name = %s", name)
        return
    _row(f"delete from {FAILURES} where last_at < %s", time.time() - FORGOTTEN)  # whoever asks with many names
    counted = f"on conflict (name) do update set n = {FAILURES}.n + 1, last_at = excluded.last_at"
    _row(f"insert into {FAILURES} values (%s, 1, %s) {counted}", name, time.time())


def pending(user: Any) -> list[str]:
    """The campaigns that ask this person to practise first."""
    passed = f"select campaign from {PRACTICE} where user_id = %s and step = {2 * N_IMAGES} and n_right >= {N_PASSING}"
    asking = f"select campaign from {PRACTICE_SETS} where campaign not in ({passed}) order by campaign"
    return [campaign for (campaign,) in rows(asking, user.id)] if role_of(user) in PRACTISING else []


def note_request(request: HttpRequest, response: HttpResponse) -> None:
    """Add an administrator's request that changes something to the audit log, without parameters and body; views say
    more of it in ``darkroom_note``, commands their user in a header."""
    if request.method in ("GET", "HEAD", "OPTIONS") or (user := user_of(request)) is None or not user.is_staff:
        return
    who = f"{user.email} {request.headers.get('X-Darkroom-User', '')[:100]}".rstrip()
    now, note = datetime.now(UTC).isoformat(timespec="seconds"), getattr(request, "darkroom_note", "")[:500]
    values = (now, who, f"{request.method} {request.path}"[:320], response.status_code, note)
    rows(f"insert into {AUDIT}(at, who, request, status, note) values (%s, %s, %s, %s, %s)", *values)


def listed(columns: str, rest: str, *values: Any) -> list[dict[str, Any]]:
    """The rows of a query as objects."""
    names = [column.split()[-1] for column in columns.split(", ")]
    return [dict(zip(names, row, strict=True)) for row in rows(f"select {columns} {rest}", *values)]
