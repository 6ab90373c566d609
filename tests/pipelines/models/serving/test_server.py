"""Starting and stopping a server: nothing is left behind. The program is a stand-in, the rest is real."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from darkroom.pipelines.models.serving import ModelServer, ServedModel, ServingError, VllmEngine
from darkroom.pipelines.processes.process_sessions import ProcessError
from tests.pipelines.models.serving.conftest import MODEL, Start
from tests.waiting import wait_until

EngineOf = Callable[..., VllmEngine]


def silent(progress: object) -> None:
    pass


@pytest.fixture
def started(start_server: Start, engine: EngineOf) -> Callable[..., ModelServer]:
    """Starts a server and waits until it is ready."""

    def _started(*arguments: str, model: ServedModel = MODEL) -> ModelServer:
        server = start_server(model, engine(*arguments))
        server.wait_until_ready(report=silent, patience_seconds=300)
        return server

    return _started


def test_a_server_becomes_ready_and_leaves_nothing_when_stopped(started: Callable[..., ModelServer]) -> None:
    server = started()
    assert len(server.process.mark.members()) == 3  # the program, its worker, and the shell that watches the pipe
    server.stop()
    assert server.process.mark.members() == []


def test_two_servers_have_two_ports_and_two_logs(started: Callable[..., ModelServer]) -> None:
    first, second = started(), started()
    assert first.url != second.url
    assert first.log != second.log


def test_a_server_that_dies_while_it_loads_says_why_at_once(start_server: Start, engine: EngineOf) -> None:
    server = start_server(MODEL, engine("--die"))
    with pytest.raises(ServingError, match=r"died .* into its start(.|\n)*no memory left for the KV cache"):
        server.wait_until_ready(report=silent, patience_seconds=300)
    assert not server.is_running


def test_the_workers_of_a_dead_server_end_when_it_is_stopped(started: Callable[..., ModelServer]) -> None:
    dead = started()
    os.kill(dead.process.mark.pid, signal.SIGKILL)
    wait_until(lambda: not dead.is_running)
    assert len(dead.process.mark.members()) == 2
    dead.stop()
    assert dead.process.mark.members() == []


def test_a_server_that_ignores_sigterm_is_killed(started: Callable[..., ModelServer]) -> None:
    server = started("--deaf")
    server.stop(grace_seconds=0.3)
    assert server.process.mark.members() == []


def test_a_port_that_is_taken_is_said_before_anything_is_started(start_server: Start, engine: EngineOf) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(ProcessError, match=rf"cannot listen on 127.0.0.1 port {taken} .*omit --port"):
            start_server(MODEL, engine(), port=taken)


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:"), ("::1", "http://[::1]:")],
)
def test_the_address_is_one_that_can_be_asked_from_here(
    start_server: Start, engine: EngineOf, host: str, url: str
) -> None:
    assert start_server(MODEL, engine(), host=host).url.startswith(url)


def test_the_settings_name_endpoint_and_model_and_a_folder_s_revision(
    start_server: Start, engine: EngineOf, tmp_path: Path
) -> None:
    server = start_server(MODEL, engine())
    assert server.settings() == {
        "DARKROOM_POLICY": "openai",
        "DARKROOM_POLICY_URL": f"{server.url}/v1",
        "DARKROOM_POLICY_MODEL": "Qwen/Qwen3-VL-8B-Instruct",
    }
    (tmp_path / "config.json").write_text("{}")
    trained = ServedModel.parse(str(tmp_path))
    assert start_server(trained, engine()).settings()["DARKROOM_POLICY_REVISION"] == trained.revision
