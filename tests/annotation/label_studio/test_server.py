from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from annotation import AnnotationError
from annotation.label_studio.server import (
    REQUIREMENTS,
    LabelStudioServer,
    _command,
    _database,
    _parse_url,
    connect,
    find_task_url,
    server_of,
)
from pipelines.storage.workspace import Workspace


@pytest.fixture
def home(workspace: Workspace) -> LabelStudioServer:
    return server_of(workspace)


def test_the_admins_secrets_are_made_up_once_and_kept_from_others(home: LabelStudioServer) -> None:
    admin = home.admin
    assert home.admin == admin
    path = home.folder / "admin.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["token"] == admin.token
    assert len(admin.token) == 40
    assert len(admin.password) >= 18


def test_the_server_is_told_to_keep_quiet_and_closed(home: LabelStudioServer) -> None:
    variables = home._variables(None)
    assert variables["LABEL_STUDIO_COLLECT_ANALYTICS"] == "false"
    assert variables["SENTRY_DSN"] == variables["FRONTEND_SENTRY_DSN"] == ""
    assert variables["LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"] == "true"
    assert variables["DJANGO_DB"] == "sqlite"


def test_sqlite_has_one_process_and_postgresql_several(home: LabelStudioServer) -> None:
    sqlite, postgres = (
        " ".join(_command(home.environment, home.folder, "127.0.0.1", 8080, url))
        for url in (None, "postgresql://u:p@h/d")
    )
    assert "--workers 1 " in sqlite
    assert "--workers 3 " in postgres
    assert "127.0.0.1:8080" in sqlite


def test_a_database_url_is_taken_apart() -> None:
    found = _database("postgresql://ann:s%40crt@db.example.com:5433/studio")
    assert found["POSTGRE_USER"] == "ann"
    assert found["POSTGRE_PASSWORD"] == "s@crt"
    assert (found["POSTGRE_HOST"], found["POSTGRE_PORT"], found["POSTGRE_NAME"]) == ("db.example.com", "5433", "studio")


@pytest.mark.parametrize("url", ["mysql://u:p@h/d", "postgresql://u:secret@h", "no url", "postgresql:///d"])
def test_another_database_is_refused_without_saying_its_password(url: str) -> None:
    with pytest.raises(AnnotationError, match="postgresql://USER:PASSWORD@HOST:PORT/NAME") as caught:
        _parse_url(url)
    assert "secret" not in str(caught.value)


def test_label_studio_is_pinned_with_all_that_it_needs() -> None:
    assert REQUIREMENTS[0] == "label-studio==1.23.2"
    assert all("==" in line and "/" not in line for line in REQUIREMENTS)
    assert {"django", "gunicorn", "fsspec"} <= {line.partition("==")[0].lower() for line in REQUIREMENTS}


def test_without_a_server_the_command_to_start_one_is_named(workspace: Workspace) -> None:
    with pytest.raises(AnnotationError, match="darkroom annotate up"):
        connect(workspace, {})


def test_half_of_a_server_elsewhere_is_refused(workspace: Workspace) -> None:
    with pytest.raises(AnnotationError, match="needs both"):
        connect(workspace, {"DARKROOM_STUDIO_URL": "http://example.com"})


def test_a_server_elsewhere_is_taken(workspace: Workspace) -> None:
    environment = {"DARKROOM_STUDIO_URL": "http://studio.example.com/", "DARKROOM_STUDIO_TOKEN": "x"}
    studio = connect(workspace, environment)
    assert studio.url == "http://studio.example.com"
    studio.close()
    assert find_task_url(workspace, environment)(3, 4) == "http://studio.example.com/projects/3/data?task=4"


def test_the_database_of_the_first_start_is_kept(home: LabelStudioServer) -> None:
    url = "postgresql://ann:secret@db.example.com/studio"
    assert home._select_database(url) == url
    assert home._select_database(None) == url
    assert stat.S_IMODE((home.folder / "postgres.url").stat().st_mode) == 0o600
    with pytest.raises(AnnotationError, match="are in postgresql://ann:") as caught:
        home._select_database("postgresql://ann:secret@db.example.com/other")
    assert "secret" not in str(caught.value)


def test_data_in_sqlite_are_not_left_behind_unseen(home: LabelStudioServer) -> None:
    assert home._select_database(None) is None
    (home.folder / "studio").mkdir(parents=True)
    (home.folder / "studio" / "label_studio.sqlite3").touch()
    with pytest.raises(AnnotationError, match="are in SQLite"):
        home._select_database("postgresql://ann:secret@db.example.com/studio")


def test_stopping_what_never_ran_says_so(home: LabelStudioServer) -> None:
    assert home.stop() is False


def test_a_template_that_cannot_be_made_says_why(home: LabelStudioServer, tmp_path: Path) -> None:
    python = home.environment.folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    os.chmod(python, 0o755)
    with pytest.raises(AnnotationError, match="no such module"):
        home._template()
