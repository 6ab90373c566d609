"""Starting and stopping a server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipelines.serving.addresses import free_port
from pipelines.serving.engines import Engine
from pipelines.serving.faults import ServingFault
from pipelines.serving.models import ServedModel, hub_revision
from pipelines.serving.processes import Held, stop_session
from pipelines.serving.servers import Server, Servers

GRACE_SECONDS = 20.0
"""Between SIGTERM and SIGKILL: a request that is being written may end."""


class Started(NamedTuple):
    """A server, and whether it was running already."""

    server: Server
    reused: bool


def start(
    servers: Servers, model: ServedModel, engine: Engine, *, host: str = "127.0.0.1", port: int | None = None
) -> Started:
    """Starts a server on a free port, or finds the one of this model; returns before it is ready.

    Raises ``ServingFault`` when the engine cannot run here, the port is taken, or the model is served differently.
    """
    if (running := _running(servers, model.name)) is None:
        model.require_weights()
        engine.prepare()
    with servers.lock():
        running = _running(servers, model.name)
        if running is not None:
            return Started(_require_same(running, model, engine, port), reused=True)
        return Started(_launch(servers, model, engine, host, port), reused=False)


def stop(servers: Servers, server: Server, *, grace_seconds: float = GRACE_SECONDS) -> bool:
    """Ends the server and every process that it started; False when it was gone already.

    Raises ``ServingFault`` for a server of another machine.
    """
    _require_local(servers, server)
    with servers.lock():
        was_running = server.process.is_running
        stop_session(server.process, grace_seconds=grace_seconds)
        if is_there(servers, server):  # another starter may have replaced it since
            servers.remove(server)
    return was_running


def pin(servers: Servers, server: Server) -> Server:
    """Notes which commit of a hub model a server that is ready has loaded: the ledger knows a model by its revision."""
    if server.revision or Path(server.model).is_absolute():
        return server
    pinned = replace(server, revision=hub_revision(server.model, server.options))
    with servers.lock():
        if pinned.revision and is_there(servers, server):
            servers.write(pinned)
    return pinned


def is_there(servers: Servers, server: Server) -> bool:
    """Whether this very server, not a later one of its model, is on record."""
    found = servers.find(server.model)
    return found is not None and found.process == server.process


def _running(servers: Servers, model: str) -> Server | None:
    """The model's server, if it runs. Raises ``ServingFault`` for one of another machine: that cannot be told."""
    found = servers.find(model)
    if found is None:
        return None
    _require_local(servers, found)
    return found if found.process.is_running else None


def _require_local(servers: Servers, server: Server) -> None:
    if not server.process.is_local:
        raise ServingFault(
            f"{server.model} was started on {server.process.host}: stop it there. If that machine is no more, remove "
            f"{servers.path(server.model)}"
        )


def _require_same(running: Server, model: ServedModel, engine: Engine, port: int | None) -> Server:
    if model.is_folder and running.revision != model.revision:
        raise ServingFault(
            f"the files in {model.name} have changed since its server loaded them. Stop it first: "
            f"darkroom serve {model.name} --stop"
        )
    if (running.engine, running.options) != (engine.name, engine.options) or port not in (None, running.port):
        raise ServingFault(
            f"{running.model} is being served already, by {running.engine} on port {running.port} with "
            f"{' '.join(running.options) or 'no options'}. Stop it first: darkroom serve {running.model} --stop"
        )
    return running


def _launch(servers: Servers, model: ServedModel, engine: Engine, host: str, port: int | None) -> Server:
    dead = servers.find(model.name)
    if dead is not None:  # its workers may hold the GPU
        stop_session(dead.process, grace_seconds=GRACE_SECONDS)
    port = _choose_port(servers, host, port)
    log = servers.path(model.name).with_suffix(".log")
    held = Held(engine.command(model, host=host, port=port), environment=engine.environment(model), log=log)
    server = Server(
        model=model.name,
        engine=engine.name,
        host=host,
        port=port,
        options=engine.options,
        revision=model.revision,
        log=str(log),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        process=held.mark,
    )
    try:
        servers.write(server)
    except OSError:
        held.drop()
        raise
    held.release()
    return server


def _choose_port(servers: Servers, host: str, wanted: int | None) -> int:
    """``wanted``, or a free one. A server that is still loading has not opened its port: it counts as taken."""
    ours = {server.port: server.model for server in servers.all() if server.process.is_running}
    if wanted is None:
        while (port := free_port(host)) in ours:
            continue
        return port
    if wanted in ours:
        raise ServingFault(f"port {wanted} belongs to the server of {ours[wanted]}; leave --port out for a free one")
    return free_port(host, wanted)
