from __future__ import annotations

import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio import server_files
from darkroom.annotation.label_studio.server import (
    REQUIREMENTS,
    LabelStudioServer,
    _command,
    connect,
    find_task_url,
    server_of,
)
from darkroom.annotation.label_studio.server_files import (
    Address,
    database_variables,
    parse_url,
    secret_key,
    select_address,
    select_database,
)
from darkroom.pipelines.processes.process_sessions import ProcessError, free_port
from darkroom.pipelines.storage.workspace import Workspace


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
    variables = home.variables(None)
    assert variables["LABEL_STUDIO_COLLECT_ANALYTICS"] == "false"
    assert variables["SENTRY_DSN"] == variables["FRONTEND_SENTRY_DSN"] == ""
    assert variables["LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"] == "true"
    assert variables["DJANGO_DB"] == "sqlite"


def test_sqlite_has_one_process_and_postgresql_several(home: LabelStudioServer) -> None:
    sqlite, postgres = (
        " ".join(_command(home.environment, home.folder, Address("127.0.0.1", 8080), url))
        for url in (None, "postgresql://u:p@h/d")
    )
    assert "--workers 1 " in sqlite
    assert "--workers 3 " in postgres
    assert "127.0.0.1:8080" in sqlite


def test_a_database_url_is_taken_apart() -> None:
    found = database_variables("postgresql://ann:s%40crt@db.example.com:5433/studio")
    assert found["POSTGRE_USER"] == "ann"
    assert found["POSTGRE_PASSWORD"] == "s@crt"
    assert (found["POSTGRE_HOST"], found["POSTGRE_PORT"], found["POSTGRE_NAME"]) == ("db.example.com", "5433", "studio")


@pytest.mark.parametrize("url", ["mysql://u:p@h/d", "postgresql://u:secret@h", "no url", "postgresql:///d"])
def test_another_database_is_refused_without_saying_its_password(url: str) -> None:
    with pytest.raises(AnnotationError, match="postgresql://USER:PASSWORD@HOST:PORT/NAME") as caught:
        parse_url(url)
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
    with connect(workspace, environment) as studio:
        assert studio.url == "http://studio.example.com"
    assert find_task_url(workspace, environment)(3, 4) == "http://studio.example.com/projects/3/data?task=4"


def test_the_database_of_the_first_start_is_kept(home: LabelStudioServer) -> None:
    url = "postgresql://ann:secret@db.example.com/studio"
    assert select_database(home.folder, url) == url
    assert select_database(home.folder, None) == url
    assert stat.S_IMODE((home.folder / "postgres.url").stat().st_mode) == 0o600
    with pytest.raises(AnnotationError, match="are in postgresql://ann:") as caught:
        select_database(home.folder, "postgresql://ann:secret@db.example.com/other")
    assert "secret" not in str(caught.value)


def test_data_in_sqlite_are_not_left_behind_unseen(home: LabelStudioServer) -> None:
    assert select_database(home.folder, None) is None
    (home.folder / "studio").mkdir(parents=True)
    (home.folder / "studio" / "label_studio.sqlite3").touch()
    with pytest.raises(AnnotationError, match="are in SQLite"):
        select_database(home.folder, "postgresql://ann:secret@db.example.com/studio")


def test_a_later_start_keeps_the_address_and_an_option_changes_it(home: LabelStudioServer) -> None:
    first = select_address(home.folder, None, None)
    assert first.host == "127.0.0.1"
    assert select_address(home.folder, None, None) == first
    other = free_port("127.0.0.1")
    assert select_address(home.folder, None, other) == Address("127.0.0.1", other)
    assert select_address(home.folder, "0.0.0.0", None) == Address("0.0.0.0", other)
    assert select_address(home.folder, None, None) == Address("0.0.0.0", other)


def test_a_start_of_an_older_version_gives_its_port(home: LabelStudioServer) -> None:
    port = free_port("127.0.0.1")
    assert select_address(home.folder, None, None, last_url=f"http://127.0.0.1:{port}").port == port
    assert Address("::1", 8080).text == "[::1]:8080"


def test_another_program_on_the_servers_port_is_told_as_such(
    home: LabelStudioServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = select_address(home.folder, None, None)
    with socket.socket() as other:
        other.bind(kept)
        other.listen()
        monkeypatch.setattr(server_files, "PATIENCE_SECONDS", 0.2)
        with pytest.raises(ProcessError, match=rf"another program listens on port {kept.port}.*open pages.*--port"):
            select_address(home.folder, None, None)
    assert select_address(home.folder, None, None) == kept


def test_a_port_that_a_killed_server_still_holds_is_waited_for(home: LabelStudioServer) -> None:
    kept = select_address(home.folder, None, None)
    with socket.socket() as dying:
        dying.bind(kept)
        dying.listen()
        last_thread = threading.Timer(0.5, dying.close)
        last_thread.start()
        assert select_address(home.folder, None, None) == kept
        last_thread.join()


def test_the_secret_key_is_made_once_and_an_older_campaigns_is_taken_over(home: LabelStudioServer) -> None:
    key = secret_key(home.folder)
    assert secret_key(home.folder) == key
    assert stat.S_IMODE((home.folder / "secret_key").stat().st_mode) == 0o600
    old = home.folder / "old"
    (old / "studio").mkdir(parents=True)
    (old / "studio" / ".env").write_text("\nSECRET_KEY=an-old=one#(\n")
    assert secret_key(old) == secret_key(old) == "an-old=one#("


def test_a_key_that_label_studio_cannot_read_back_is_replaced(home: LabelStudioServer) -> None:
    (home.folder / "studio").mkdir(parents=True)
    (home.folder / "studio" / ".env").write_text("SECRET_KEY=$changes-at-each-start\n")
    assert "$" not in secret_key(home.folder)


def test_stopping_what_never_ran_says_so(home: LabelStudioServer) -> None:
    assert home.stop() is False


def test_a_template_that_cannot_be_made_says_why(home: LabelStudioServer, tmp_path: Path) -> None:
    python = home.environment.folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    os.chmod(python, 0o755)
    with pytest.raises(AnnotationError, match="no such module"):
        home._template(lambda step: None)
