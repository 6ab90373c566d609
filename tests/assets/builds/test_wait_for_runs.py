"""A command that waits for shards elsewhere, while Dagster's history is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dagster_postgres.utils import DagsterPostgresException
from rich.console import Console
from rich.status import Status
from sqlalchemy.exc import OperationalError

from darkroom.assets.builds import jobs as elsewhere
from darkroom.sandbox.errors import UserError

AWAY = (OperationalError("SELECT", {}, Exception("refused")), DagsterPostgresException("too many retries"))


@pytest.fixture
def status(monkeypatch: pytest.MonkeyPatch) -> Status:
    monkeypatch.setattr(elsewhere, "_SECONDS", 0.0)
    return Status("", console=Console(quiet=True))


def test_it_waits_for_a_history_that_comes_back(status: Status) -> None:
    answers: Iterator[Exception | int] = iter([*AWAY, 3])

    def ask() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert elsewhere._patiently(status, ask) == 3


def test_what_stays_away_is_one_line(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> int:
        raise AWAY[0]

    monkeypatch.setattr(elsewhere, "_AWAY_SECONDS", 0.0)
    with pytest.raises(UserError, match=r"^Dagster's history does not answer .* then run this again; .*\Z"):
        elsewhere._patiently(status, ask)
