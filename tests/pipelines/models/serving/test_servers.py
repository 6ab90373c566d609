"""The record of a server: whole or not there, read back as it was, and what it says to export."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.pipelines.models.serving import ModelServer, ServerRegistry
from darkroom.pipelines.models.serving.processes import ProcessMark, ServingError
from darkroom.pipelines.models.serving.servers import free_port, url_of

SERVER = ModelServer(
    model="Qwen/Qwen3-VL-8B-Instruct",
    engine="vllm",
    host="127.0.0.1",
    port=8000,
    options=("--max-model-len", "auto"),
    revision="",
    log="/logs/x.log",
    started="2026-03-01T09:30:00+00:00",
    process=ProcessMark("here", "boot", 4711, 81234),
)


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    servers = ServerRegistry(tmp_path / "servers")
    servers.write(SERVER)
    assert servers.find(SERVER.model) == SERVER
    assert servers.all() == [SERVER]


def test_names_that_look_alike_in_a_file_name_are_two_records(tmp_path: Path) -> None:
    servers = ServerRegistry(tmp_path)
    assert servers.path("a/b") != servers.path("a-b")
    assert servers.path("../../etc/passwd").parent == tmp_path


def test_a_file_that_is_no_record_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"model": 3}')
    with pytest.raises(ServingError, match=r"broken\.json is not the record of a server"):
        ServerRegistry(tmp_path).all()


def test_a_writer_that_was_killed_leaves_the_record_whole(tmp_path: Path) -> None:
    servers = ServerRegistry(tmp_path)
    servers.write(SERVER)
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from darkroom.pipelines.models.serving import ServerRegistry\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"servers = ServerRegistry(Path({str(tmp_path)!r})); servers.write(servers.all()[0])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert servers.all() == [SERVER]


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")],
)
def test_the_address_is_one_that_can_be_asked_from_here(host: str, url: str) -> None:
    assert ModelServer(**{**fields(), "host": host}).root_url == url


def test_the_settings_name_endpoint_and_model_and_a_folder_s_revision() -> None:
    assert SERVER.settings == {
        "DARKROOM_POLICY": "openai",
        "DARKROOM_POLICY_URL": "http://127.0.0.1:8000/v1",
        "DARKROOM_POLICY_MODEL": "Qwen/Qwen3-VL-8B-Instruct",
    }
    assert ModelServer(**{**fields(), "revision": "0c5f"}).settings["DARKROOM_POLICY_REVISION"] == "0c5f"


def test_a_process_is_marked_as_itself_only() -> None:
    own = ProcessMark.of(os.getpid())
    assert own.is_running
    assert not ProcessMark(own.host, own.boot, own.pid, own.start_ticks + 1).is_running
    assert not ProcessMark(own.host, "another boot", own.pid, own.start_ticks).is_running


def fields() -> dict:
    return {name: getattr(SERVER, name) for name in ModelServer.__slots__}


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80")],
)
def test_a_server_that_listens_everywhere_is_asked_here(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServingError, match=f"cannot listen on 127.0.0.1 port {port}"):
            free_port("127.0.0.1", port)


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port("127.0.0.1")))
