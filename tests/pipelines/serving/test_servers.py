"""The record of a server: whole or not there, read back as it was, and what it says to export."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.serving import Server, Servers, ServingFault
from pipelines.serving.processes import ProcessMark

SERVER = Server(
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
    servers = Servers(tmp_path / "servers")
    servers.write(SERVER)
    assert servers.find(SERVER.model) == SERVER
    assert servers.all() == [SERVER]


def test_names_that_look_alike_in_a_file_name_are_two_records(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    assert servers.path("a/b") != servers.path("a-b")
    assert servers.path("../../etc/passwd").parent == tmp_path


def test_a_file_that_is_no_record_is_named_in_the_fault(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"model": 3}')
    with pytest.raises(ServingFault, match=r"broken\.json is not the record of a server"):
        Servers(tmp_path).all()


def test_a_writer_that_was_killed_leaves_the_record_whole(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    servers.write(SERVER)
    program = (
        "import os, signal, sys; from pathlib import Path; from pipelines.serving import Servers\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"servers = Servers(Path({str(tmp_path)!r})); servers.write(servers.all()[0])"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert servers.all() == [SERVER]


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")],
)
def test_the_address_is_one_that_can_be_asked_from_here(host: str, url: str) -> None:
    assert Server(**{**fields(), "host": host}).root_url == url


def test_the_settings_name_endpoint_and_model_and_a_folder_s_revision() -> None:
    assert SERVER.settings == {
        "DARKROOM_POLICY": "openai",
        "DARKROOM_POLICY_URL": "http://127.0.0.1:8000/v1",
        "DARKROOM_POLICY_MODEL": "Qwen/Qwen3-VL-8B-Instruct",
    }
    assert Server(**{**fields(), "revision": "0c5f"}).settings["DARKROOM_POLICY_REVISION"] == "0c5f"


def test_a_process_is_marked_as_itself_only() -> None:
    own = ProcessMark.of(os.getpid())
    assert own.is_running
    assert not ProcessMark(own.host, own.boot, own.pid, own.start_ticks + 1).is_running
    assert not ProcessMark(own.host, "another boot", own.pid, own.start_ticks).is_running


def fields() -> dict:
    return {name: getattr(SERVER, name) for name in Server.__slots__}
