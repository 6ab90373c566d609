"""`darkroom annotate up`: what a service manager learns of the server's end, and what Ctrl-C leaves running."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict

import pytest
import typer

from darkroom.annotation import AnnotationError
from darkroom.annotation.commands import server as commands
from darkroom.annotation.label_studio.server import LabelStudioServer, ServerInfo, server_of
from darkroom.pipelines.processes.process_sessions import PausedProcess
from darkroom.pipelines.storage.workspace import Workspace


@pytest.fixture
def server(workspace: Workspace) -> LabelStudioServer:
    return server_of(workspace)


def start(server: LabelStudioServer) -> ServerInfo:
    """A process in the server's place."""
    log = server.folder / "server.log"
    process = PausedProcess(["sleep", "600"], environment=os.environ, log=log)
    info = ServerInfo("http://127.0.0.1:1", "sqlite", str(log), process.mark)
    (server.folder / "server.json").write_text(json.dumps(asdict(info)))
    process.release()
    return info


@pytest.fixture
def running(server: LabelStudioServer) -> ServerInfo:
    return start(server)


def test_a_server_that_dies_is_an_error_so_that_it_is_started_again(
    server: LabelStudioServer, running: ServerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands.time, "sleep", lambda seconds: None)
    os.kill(running.process.pid, signal.SIGKILL)
    with pytest.raises(AnnotationError, match=r"Label Studio has ended\. End of .*server\.log"):
        commands._follow(server, running)


def test_a_server_that_was_stopped_is_none(server: LabelStudioServer, running: ServerInfo) -> None:
    assert server.stop()
    commands._follow(server, running)


def test_sigterm_stops_the_server_and_is_no_error(server: LabelStudioServer, running: ServerInfo) -> None:
    with pytest.raises(typer.Exit) as ended, commands._stopped_at_the_end(server):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.exit_code == 0
    assert not running.process.is_running
    assert server.find() is None


def test_ctrl_c_stops_a_server_that_does_not_answer_yet(server: LabelStudioServer) -> None:
    started: list[ServerInfo] = []

    def begin() -> None:
        with commands._stopped_by_ctrl_c(server):
            started.append(start(server))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert not started[0].process.is_running
    assert server.find() is None


def test_ctrl_c_leaves_a_server_running_that_was_started_before(server: LabelStudioServer, running: ServerInfo) -> None:
    with pytest.raises(KeyboardInterrupt), commands._stopped_by_ctrl_c(server):
        raise KeyboardInterrupt
    assert running.process.is_running
    assert server.stop()
