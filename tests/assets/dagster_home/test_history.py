"""Dagster's databases on a fresh home: several processes may come first, and a broken file is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from darkroom.assets.dagster_home.instance import open_instance, prepare_dagster_home
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError
from tests.ports import free_port
from tests.together import run_together

OPEN = """
from darkroom.assets.dagster_home.instance import open_instance
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


@pytest.mark.e2e
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
    with pytest.raises(UserError, match=f"rm -r {dagster_home}/history") as caught:
        open_instance()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("storage: [", r"no YAML mapping in line 1: correct .*dagster\.yaml, or delete it"),
        ("- storage", r"no YAML mapping: correct .*dagster\.yaml"),
        ("storag: {sqlite: {base_dir: /x}}  # postgres", r'unexpected config entry "storag" at the root\.\): correct'),
        ("run_retries: {enabled: maybe}", r'run_retries:enabled\. Value "maybe"'),
        (Path("assets/dagster_team.yaml").read_text(), r"takes DAGSTER_POSTGRES_URL from the environment, .* set it"),
    ],
)
def test_settings_that_are_wrong_are_named(
    dagster_home: Path, monkeypatch: pytest.MonkeyPatch, settings: str, message: str
) -> None:
    monkeypatch.delenv("DAGSTER_POSTGRES_URL", raising=False)
    (dagster_home / "dagster.yaml").write_text(settings)
    with pytest.raises(UserError, match=message) as caught:
        open_instance()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_database_server_that_is_away_is_two_lines(
    dagster_home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("dagster_postgres")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", f"postgresql://user:word@127.0.0.1:{free_port()}/dagster")
    (dagster_home / "dagster.yaml").write_text(Path("assets/dagster_team.yaml").read_text())
    with pytest.raises(UserError, match=r"Connection refused.*: check DAGSTER_POSTGRES_URL"):
        open_instance()
    assert capfd.readouterr().err == "Dagster's database does not answer: trying again for some seconds\n"


def test_a_database_of_garbage_is_a_message(dagster_home: Path) -> None:
    (dagster_home / "history").mkdir()
    (dagster_home / "history" / "runs.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(UserError, match="history is broken"):
        open_instance()


def test_a_database_that_cannot_be_opened_is_not_to_be_deleted(dagster_home: Path) -> None:
    (dagster_home / "history" / "runs.db").mkdir(parents=True)
    with pytest.raises(UserError, match="writable") as caught:
        open_instance()
    assert "rm -r" not in str(caught.value)
