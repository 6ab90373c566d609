"""Checkers' own answers, settled before they see a record: ``POST /darkroom/tasks/<n>/answer {"answer": …}``. The first
one of a person on a task stays. They have a table of their own: Label Studio saves whole tasks and deletes drafts, and
would lose an answer stored in either."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from darkroom_studio.identity import user_of
from darkroom_studio.languages import language_of
from darkroom_studio.validation import answer_problem, is_blind_first, read_body, served_task, without_key
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Task

TABLE = "darkroom_blind_answers"


def create_table() -> None:
    """Create the table in either database (idempotent); a backup of the database has it."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"create table if not exists {TABLE} (task_id integer not null, user_id integer not null, "
            "answer text not null, settled_at varchar(40) not null, primary key (task_id, user_id))"
        )


def settled_answer(task_id: int, user: Any) -> str:
    """The answer of a person to a task; empty before they gave one."""
    with connection.cursor() as cursor:
        cursor.execute(f"select answer from {TABLE} where task_id = %s and user_id = %s", [task_id, user.id])
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def settle(task_id: int, user: Any, answer: str) -> str:
    """Store a first answer; returns the one that counts."""
    values = [task_id, user.id, answer, datetime.now(UTC).isoformat(timespec="seconds")]
    with connection.cursor() as cursor:
        cursor.execute(f"insert into {TABLE} values (%s, %s, %s, %s) on conflict (task_id, user_id) do nothing", values)
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
    problem = answer_problem(sent, language_of(request))
    if problem:
        return JsonResponse({"detail": problem}, status=400)
    return JsonResponse({"answer": settle(pk, user, sent.strip())})
