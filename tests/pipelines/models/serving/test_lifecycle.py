"""Starting and stopping: one server per model, nothing left behind. The program is a stand-in, the rest is real."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.models.serving import (
    ModelServer,
    ServedModel,
    ServerRegistry,
    ServingError,
    TransformersEngine,
    VllmEngine,
    start,
    state,
    stop,
    wait_until_ready,
)
from darkroom.pipelines.models.serving.processes import ProcessMark
from tests.pipelines.models.serving.conftest import MODEL
from tests.waiting import wait_until

EngineOf = Callable[..., VllmEngine]


def silent(progress: object) -> None:
    pass


def started(servers: ServerRegistry, engine: VllmEngine) -> ModelServer:
    server = start(servers, MODEL, engine).server
    wait_until_ready(server, report=silent, patience_seconds=300)
    return server


def test_a_server_becomes_ready_and_leaves_nothing_when_stopped(servers: ServerRegistry, engine: EngineOf) -> None:
    server = started(servers, engine())
    assert len(server.process.members()) == 2  # the program and its worker
    assert stop(servers, server)
    assert server.process.members() == []
    assert servers.all() == []


def test_the_same_model_started_twice_is_one_server(servers: ServerRegistry, engine: EngineOf) -> None:
    first = started(servers, engine())
    again = start(servers, MODEL, engine())
    assert again.reused
    assert again.server == first


def test_two_starters_at_once_make_one_server(servers: ServerRegistry, engine: EngineOf) -> None:
    with ThreadPoolExecutor(4) as starters:
        made = list(starters.map(lambda n: start(servers, MODEL, engine()), range(4)))
    assert len({one.server.process for one in made}) == 1
    assert sorted(one.reused for one in made) == [False, True, True, True]


def test_two_models_have_two_servers_on_two_ports(servers: ServerRegistry, engine: EngineOf) -> None:
    first = started(servers, engine())
    other = start(servers, ServedModel("Qwen/Qwen3-8B"), engine()).server
    wait_until_ready(other, report=silent, patience_seconds=300)
    assert first.port != other.port
    assert [server.model for server in servers.all()] == ["Qwen/Qwen3-8B", MODEL.name]


def test_a_model_served_with_other_options_is_not_reused(servers: ServerRegistry, engine: EngineOf) -> None:
    started(servers, engine())
    with pytest.raises(ServingError, match=r"served already, by vllm .* --stop"):
        start(servers, MODEL, replace(engine(), images=4))
    with pytest.raises(ServingError, match=r"served already, by vllm .* --stop"):
        start(servers, MODEL, TransformersEngine())


def test_a_folder_that_was_trained_on_is_not_served_from_what_was_loaded_before(
    servers: ServerRegistry, engine: EngineOf, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    start(servers, ServedModel.parse(str(folder)), engine())
    (folder / "model.safetensors").write_bytes(b"new")
    with pytest.raises(ServingError, match="changed since its server loaded them"):
        start(servers, ServedModel.parse(str(folder)), engine())


def test_a_server_that_dies_while_it_loads_says_why_at_once(servers: ServerRegistry, engine: EngineOf) -> None:
    server = start(servers, MODEL, engine("--die")).server
    with pytest.raises(ServingError, match=r"died .* into its start(.|\n)*no memory left for the KV cache"):
        wait_until_ready(server, report=silent, patience_seconds=300)
    assert state(server) == "gone"


def test_the_worker_of_a_dead_server_is_ended_before_the_next_start(servers: ServerRegistry, engine: EngineOf) -> None:
    dead = started(servers, engine())
    os.kill(dead.process.pid, signal.SIGKILL)
    while dead.process.is_running:
        time.sleep(0.02)
    assert len(dead.process.members()) == 1
    fresh = started(servers, engine())
    assert dead.process.members() == []
    assert fresh.process != dead.process


def test_a_server_that_ignores_sigterm_is_killed(servers: ServerRegistry, engine: EngineOf) -> None:
    server = started(servers, engine("--deaf"))
    assert stop(servers, server, grace_seconds=0.3)
    assert server.process.members() == []


@pytest.fixture
def deaf_starter() -> Iterator[None]:
    """This process ignores the signals that end a server, as one that a shell put into the background may."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("deaf_starter")
def test_a_server_listens_to_sigterm_whatever_its_starter_ignores(servers: ServerRegistry, engine: EngineOf) -> None:
    pid = started(servers, engine()).process.pid
    ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert ignored is not None
    assert not int(ignored[1], 16) & (1 << (signal.SIGTERM - 1) | 1 << (signal.SIGINT - 1))


def test_stopping_a_server_that_is_gone_forgets_it(servers: ServerRegistry, engine: EngineOf) -> None:
    server = started(servers, engine())
    os.kill(server.process.pid, signal.SIGKILL)
    while server.process.is_running:
        time.sleep(0.02)
    assert not stop(servers, server)
    assert servers.all() == []


def test_a_process_that_was_given_the_number_later_is_never_touched(servers: ServerRegistry, engine: EngineOf) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        server = started(servers, engine())
        stop(servers, server)
        earlier = ProcessMark.of(other.pid).start_ticks - 1
        stale = replace(server, process=replace(server.process, pid=other.pid, start_ticks=earlier))
        servers.write(stale)
        assert state(stale) == "gone"
        assert not stop(servers, stale)
        assert other.poll() is None
        other.communicate(b"\n")


def test_a_server_from_before_the_last_boot_is_gone(servers: ServerRegistry, engine: EngineOf) -> None:
    server = started(servers, engine())
    assert state(replace(server, process=replace(server.process, boot="another"))) == "gone"


def test_a_server_of_another_machine_is_neither_replaced_nor_stopped(servers: ServerRegistry, engine: EngineOf) -> None:
    server = started(servers, engine())
    elsewhere = replace(server, process=replace(server.process, host="gpu-7"))
    servers.write(elsewhere)
    assert state(elsewhere) == "elsewhere"
    with pytest.raises(ServingError, match="started on gpu-7"):
        start(servers, MODEL, engine())
    with pytest.raises(ServingError, match="started on gpu-7"):
        stop(servers, elsewhere)
    servers.write(server)


def test_a_port_that_is_taken_is_said_before_anything_is_started(servers: ServerRegistry, engine: EngineOf) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(ServingError, match=rf"cannot listen on 127.0.0.1 port {taken} .*omit --port"):
            start(servers, MODEL, engine(), port=taken)
    assert servers.all() == []


def test_the_port_of_a_server_that_is_still_loading_counts_as_taken(servers: ServerRegistry, engine: EngineOf) -> None:
    loading = start(servers, MODEL, engine()).server
    with pytest.raises(ServingError, match=f"belongs to the server of {MODEL.name}"):
        start(servers, ServedModel("other/model"), engine(), port=loading.port)


def test_a_starter_that_dies_before_it_wrote_the_record_leaves_no_process(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from darkroom.pipelines.models.serving.processes import PausedProcess\n"
        f"held = PausedProcess(['sleep', '600'], environment=dict(os.environ), log=Path({str(tmp_path / 'log')!r}))\n"
        "print(held.mark.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    wait_until(lambda: not stat.exists() or " Z " in stat.read_text())
