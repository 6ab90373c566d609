"""Backups of a campaign on SQLite, without a server; with one, and with PostgreSQL, in tests/e2e."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.server_files import SQLITE, admin_account, secret_key
from darkroom.annotation.rounds import backup
from darkroom.annotation.rounds.backup import back_up, restore
from darkroom.annotation.rounds.journal import Journal
from tests.annotation.desk import ANN, Desk, record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign with a submission, and a server's database that is in use."""
    desk = Desk(tmp_path / "annotation")
    desk.submit(desk.hand_out(), ANN, record())
    folder = tmp_path / "annotation"
    (folder / "studio" / "media").mkdir(parents=True)
    (folder / "studio" / "gate.jsonl").write_text("{}\n")
    admin_account(folder)
    secret_key(folder)
    with closing(sqlite3.connect(folder / "studio" / SQLITE)) as database:
        database.executescript("pragma journal_mode=wal; create table tasks(id); insert into tasks values (7)")
    return folder


def test_a_backup_comes_back_with_journal_database_and_secrets(folder: Path, tmp_path: Path) -> None:
    back_up(folder, tmp_path / "backup")
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700
    restored = tmp_path / "new"
    restore(tmp_path / "backup", restored)
    assert admin_account(restored) == admin_account(folder)
    assert secret_key(restored) == secret_key(folder)
    assert (restored / "studio" / "gate.jsonl").read_text() == "{}\n"
    with closing(sqlite3.connect(restored / "studio" / SQLITE)) as database:
        assert database.execute("select id from tasks").fetchall() == [(7,)]
    with Journal(folder) as ours, Journal(restored) as theirs:
        assert theirs.fingerprint == ours.fingerprint


def test_nothing_is_written_over(folder: Path, tmp_path: Path) -> None:
    back_up(folder, tmp_path / "backup")
    with pytest.raises(AnnotationError, match="exists already"):
        back_up(folder, tmp_path / "backup")
    with pytest.raises(AnnotationError, match="has a campaign already"):
        restore(tmp_path / "backup", folder)
    with pytest.raises(AnnotationError, match="is no backup"):
        restore(tmp_path, tmp_path / "new")
    with pytest.raises(AnnotationError, match="is a backup of SQLite"):
        restore(tmp_path / "backup", tmp_path / "new", postgres="postgresql://a:b@c/d")


@pytest.mark.parametrize("at", ["_copy_sqlite", "_copy_database"])
def test_a_backup_that_was_killed_leaves_none_and_is_repeated(
    folder: Path, tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backup, at, die)
        with pytest.raises(KeyboardInterrupt):
            back_up(folder, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    back_up(folder, tmp_path / "backup")
    with monkeypatch.context() as patched:
        patched.setattr(backup, "_copy_sqlite", die)
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "backup", tmp_path / "new")
    restore(tmp_path / "backup", tmp_path / "new")


def test_a_backup_waits_for_a_sync(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "PATIENCE_SECONDS", 0.0)
    with Journal(folder) as journal, journal.lock(), pytest.raises(AnnotationError, match="another sync"):
        back_up(folder, tmp_path / "backup")


def test_no_password_stands_in_a_command(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine sees the arguments of every program."""
    (folder / "studio" / SQLITE).unlink()
    (folder / "postgres.url").write_text("postgresql://dora:s%40cret@db.example.com:5433/studio?sslmode=require")
    program = tmp_path / "programs" / "pg_dump"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\necho "$PGPASSWORD" >{tmp_path}/password\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    back_up(folder, tmp_path / "backup")
    assert (tmp_path / "password").read_text() == "s@cret\n"
    said = (tmp_path / "arguments").read_text()
    assert said.endswith("-d postgresql://dora@db.example.com:5433/studio?sslmode=require\n")
    assert "cret" not in said
