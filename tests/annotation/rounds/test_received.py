"""What "received: …" counts: what people did."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from darkroom.annotation.rounds.sync import pulled_since
from tests.annotation.desk import ANN, BOB, Desk, accepts, record


def test_one_check_is_one_submission_whatever_else_the_server_stored(desk: Desk) -> None:
    task = desk.hand_out()
    written = desk.submit(task, ANN, record())
    before = desk.journal.last_version
    check = desk.hand_out()  # with an empty annotation that keeps the author out
    judged = desk.submit(check, BOB, accepts())
    desk.edit(check, judged, lead_time=14.0)
    desk.edit(check, judged, result=accepts("43"))
    assert desk.journal.last_version > before + 3
    assert pulled_since(desk.journal, before) == "1 submission"
    later = desk.journal.last_version
    desk.edit(task, written, lead_time=99.0)
    assert pulled_since(desk.journal, later) == "0 submissions"
    desk.edit(task, written, result=record("44"))
    desk.edit(task, written, result=record("45"))
    assert pulled_since(desk.journal, later) == "0 submissions, 1 edited"


def test_a_skipped_task_is_no_submission(desk: Desk) -> None:
    task = desk.hand_out()
    desk.submit(task, ANN, [], was_cancelled=True)
    assert pulled_since(desk.journal, 0) == "0 submissions, 1 skipped"


def test_numbers_are_said_as_one_would() -> None:
    new = [(n, {"result": ["x"]}, None) for n in range(1200)]
    skipped = [(2000 + n, {"was_cancelled": True}, None) for n in range(2)]
    edited = [(3000, {"result": ["b"]}, {"result": ["a"]})]
    journal: Any = SimpleNamespace(versions_after=lambda number: new + skipped + edited)
    assert pulled_since(journal, 0) == "1,200 submissions, 2 skipped, 1 edited"
