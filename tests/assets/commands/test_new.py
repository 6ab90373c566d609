"""``darkroom new``: what the folder holds, and which folders are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dotenv import dotenv_values
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.catalog import Catalog


def new(folder: Path | str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["new", str(folder)])
    return result.exit_code, result.output


def test_the_source_has_questions_about_places_in_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # its paths are relative: the folder may be moved
    assert new(".")[0] == 0
    rows = list(Catalog(Path("data/sources")).open("example").rows(0))
    assert len(rows) == 6
    assert all(isinstance(row, SourceRow) and row.boxes and row.answer for row in rows)


def test_settings_are_for_their_owner_and_passwords_are_drawn(tmp_path: Path) -> None:
    settings = []
    for name in ("a", "b"):
        new(tmp_path / name)
        assert (tmp_path / name / ".env").stat().st_mode & 0o077 == 0
        settings.append(dotenv_values(tmp_path / name / ".env"))
    assert settings[0].keys() == {"DARKROOM_HOME", "SERVICES_PASSWORD"}
    assert settings[0]["SERVICES_PASSWORD"] != settings[1]["SERVICES_PASSWORD"]


def test_the_readme_has_ten_lines(tmp_path: Path) -> None:
    new(tmp_path / "a")
    assert len((tmp_path / "a" / "README.md").read_text().splitlines()) <= 10


@pytest.mark.parametrize("name", ["notes.txt", "folder"])
def test_what_is_not_an_empty_folder_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    (tmp_path / "notes.txt").touch()
    status, output = new(tmp_path / name)
    assert status == 1
    assert output.splitlines() == [f"error: {tmp_path / name} is not empty: name a folder that does not exist yet"]
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["mine"]


def test_a_folders_settings_are_read_and_the_environment_is_stronger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DARKROOM_HOME", "stronger")
    monkeypatch.setenv("DAGSTER_HOME", "")
    monkeypatch.delenv("DAGSTER_HOME")  # and is deleted after the test
    Path(".env").write_text("DARKROOM_HOME=weaker\nDAGSTER_HOME=here\n")
    assert CliRunner().invoke(app, ["home"]).output.strip() == str(tmp_path / "here")
    assert os.environ["DARKROOM_HOME"] == "stronger"
