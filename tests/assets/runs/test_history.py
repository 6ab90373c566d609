"""Dagster's databases on a fresh home: several processes may come first, and a broken file is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from assets.runs.history import InstanceUnavailable, open_instance
from assets.runs.instance import prepare_dagster_home
from pipelines.storage.workspace import Workspace
from tests.together import run_together

OPEN = """
from assets.runs.history import open_instance
print("ready", flush=True)
input()
open_instance().dispose()
"""


@pytest.fixture
def dagster_home(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", str(workspace.local / "dagster"))
    return prepare_dagster_home(workspace)


def versions(database: Path) -> list[str]:
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        rows = list(connection.scalars(sa.text("select version_num from alembic_version")))
    engine.dispose()
    return rows


def test_processes_that_start_at_once_leave_one_version_of_each_table(dagster_home: Path) -> None:
    run_together(OPEN, 3, [])
    for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db"):
        assert len(versions(dagster_home / name)) == 1
    open_instance().dispose()


@pytest.mark.parametrize("name", ["history/runs.db", "schedules/schedules.db"])
def test_two_versions_of_a_database_are_a_message_that_names_the_repair(dagster_home: Path, name: str) -> None:
    open_instance().dispose()
    engine = sa.create_engine(f"sqlite:///{dagster_home / name}")
    with engine.begin() as connection:
        connection.execute(sa.text("insert into alembic_version values ('another')"))
    engine.dispose()
    with pytest.raises(InstanceUnavailable, match=f"rm -r {dagster_home}/history") as caught:
        open_instance()
    assert "\n" not in str(caught.value)


def test_a_broken_settings_file_is_named(dagster_home: Path) -> None:
    (dagster_home / "dagster.yaml").write_text("storage: [")
    with pytest.raises(InstanceUnavailable, match="or delete it"):
        open_instance()


def test_a_database_of_garbage_is_a_message(dagster_home: Path) -> None:
    (dagster_home / "history").mkdir()
    (dagster_home / "history" / "runs.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(InstanceUnavailable, match="history is broken"):
        open_instance()


def test_a_database_that_cannot_be_opened_is_not_to_be_deleted(dagster_home: Path) -> None:
    (dagster_home / "history" / "runs.db").mkdir(parents=True)
    with pytest.raises(InstanceUnavailable, match="writable") as caught:
        open_instance()
    assert "rm -r" not in str(caught.value)
