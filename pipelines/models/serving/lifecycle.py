"""Starts a server, waits until it is ready, stops it."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from darkroom.pipelines.models.serving.engines import Engine, ServedModel, hub_revision
from darkroom.pipelines.models.serving.processes import PausedProcess, ServingError, stop_session
from darkroom.pipelines.models.serving.servers import ModelServer, ServerRegistry, free_port

State = Literal["ready", "starting", "gone", "elsewhere"]
TAIL_BYTES, TAIL_LINES, POLL_SECONDS = 16_384, 15, 0.5
# without the environment's proxy, which cannot reach this machine's servers
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Progress(NamedTuple):
    """Progress of a start."""

    seconds: float
    line: str
    """The last line of the server's log."""


def state(server: ModelServer) -> State:
    """``starting``: its process does not answer yet; ``elsewhere``: it was started on another machine."""
    if not server.process.is_local:
        return "elsewhere"
    if not server.process.is_running:
        return "gone"
    return "ready" if _answers(server) else "starting"


def wait_until_ready(
    server: ModelServer, *, report: Callable[[Progress], None], patience_seconds: float = float("inf")
) -> float:
    """Returns the seconds waited. Loading may take hours, so there is no time limit by default.

    Raises ``ServingError`` with the log's tail when the process dies, or after ``patience_seconds``.
    """
    start = time.monotonic()
    while (current := state(server)) != "ready":
        waited = time.monotonic() - start
        if current != "starting":
            raise ServingError(f"the server of {server.model} died {waited:.0f} s into its start. {ending(server)}")
        if waited > patience_seconds:
            raise ServingError(f"{server.model} is not ready after {waited:.0f} s. {ending(server)}")
        lines = tail(Path(server.log))
        report(Progress(waited, lines[-1] if lines else ""))
        time.sleep(POLL_SECONDS)
    return time.monotonic() - start


def ending(server: ModelServer) -> str:
    """The end of the log, as a paragraph of an error, with a remedy for the most frequent cause."""
    text = "\n".join(tail(Path(server.log)))
    hint = ""
    if "trust_remote_code" in text or "trust-remote-code" in text:
        hint = "\nThe model brings code of its own. If you trust it: darkroom serve MODEL ... -- --trust-remote-code"
    return f"The end of {server.log}:\n{text}{hint}" if text else f"{server.log} is empty"


def tail(path: Path) -> list[str]:
    """The last lines of a log, without empty ones."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    lines = (line.rstrip() for line in text.replace("\r", "\n").split("\n"))  # progress bars return without a newline
    return [line for line in lines if line][-TAIL_LINES:]


def _answers(server: ModelServer) -> bool:
    """``/health`` and ``/v1/models``; only vLLM's list names the model (transformers lists its cache)."""
    try:
        _get(f"{server.root_url}/health")
        models = json.loads(_get(f"{server.root_url}/v1/models"))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError):
        return False
    return server.engine != "vllm" or server.model in [model.get("id") for model in models.get("data", [])]


def _get(url: str) -> bytes:
    with _opener.open(url, timeout=10) as response:
        return bytes(response.read())


GRACE_SECONDS = 20.0
"""Between SIGTERM and SIGKILL, to finish requests."""


class Started(NamedTuple):
    """A server, and whether it was running already."""

    server: ModelServer
    reused: bool


def start(
    servers: ServerRegistry, model: ServedModel, engine: Engine, *, host: str = "127.0.0.1", port: int | None = None
) -> Started:
    """Starts a server on a free port, or finds the model's running one; returns before it is ready.

    Raises ``ServingError`` when the engine cannot run here, the port is taken, or the model is served differently.
    """
    if (running := _running(servers, model.name)) is None:
        model.require_weights()
        engine.prepare()
    with servers.lock():
        running = _running(servers, model.name)
        if running is not None:
            return Started(_require_same(running, model, engine, port), reused=True)
        return Started(_launch(servers, model, engine, host, port), reused=False)


def stop(servers: ServerRegistry, server: ModelServer, *, grace_seconds: float = GRACE_SECONDS) -> bool:
    """Ends the server and every process that it started; False when it had already ended.

    Raises ``ServingError`` for a server of another machine.
    """
    _require_local(servers, server)
    with servers.lock():
        was_running = server.process.is_running
        stop_session(server.process, grace_seconds=grace_seconds)
        if is_recorded(servers, server):  # else another start has replaced it
            servers.remove(server)
    return was_running


def pin(servers: ServerRegistry, server: ModelServer) -> ModelServer:
    """Records the commit that a ready server has loaded from the hub: the revision is part of the ledger's keys."""
    if server.revision or Path(server.model).is_absolute():
        return server
    pinned = replace(server, revision=hub_revision(server.model, server.options))
    with servers.lock():
        if pinned.revision and is_recorded(servers, server):
            servers.write(pinned)
    return pinned


def is_recorded(servers: ServerRegistry, server: ModelServer) -> bool:
    """Whether this very server, not a later one of its model, is on record."""
    recorded = servers.find(server.model)
    return recorded is not None and recorded.process == server.process


def _running(servers: ServerRegistry, model: str) -> ModelServer | None:
    """The model's server, if it runs. Raises ``ServingError`` for one on another machine, whose state is unknown."""
    server = servers.find(model)
    if server is None:
        return None
    _require_local(servers, server)
    return server if server.process.is_running else None


def _require_local(servers: ServerRegistry, server: ModelServer) -> None:
    if not server.process.is_local:
        raise ServingError(
            f"{server.model} was started on {server.process.host}: stop it there. If that machine no longer exists, "
            f"remove {servers.path(server.model)}"
        )


def _require_same(running: ModelServer, model: ServedModel, engine: Engine, port: int | None) -> ModelServer:
    if model.is_folder and running.revision != model.revision:
        raise ServingError(
            f"the files in {model.name} have changed since its server loaded them. Stop it first: "
            f"darkroom serve {model.name} --stop"
        )
    if (running.engine, running.options) != (engine.name, engine.options) or port not in (None, running.port):
        raise ServingError(
            f"{running.model} is being served already, by {running.engine} on port {running.port} with "
            f"{' '.join(running.options) or 'no options'}. Stop it first: darkroom serve {running.model} --stop"
        )
    return running


def _launch(servers: ServerRegistry, model: ServedModel, engine: Engine, host: str, port: int | None) -> ModelServer:
    dead = servers.find(model.name)
    if dead is not None:  # its workers may hold the GPU
        stop_session(dead.process, grace_seconds=GRACE_SECONDS)
    port = _choose_port(servers, host, port)
    log = servers.path(model.name).with_suffix(".log")
    process = PausedProcess(engine.command(model, host=host, port=port), environment=engine.environment(model), log=log)
    server = ModelServer(
        model=model.name,
        engine=engine.name,
        host=host,
        port=port,
        options=engine.options,
        revision=model.revision,
        log=str(log),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        process=process.mark,
    )
    try:
        servers.write(server)
    except OSError:
        process.drop()
        raise
    process.release()
    return server


def _choose_port(servers: ServerRegistry, host: str, port: int | None) -> int:
    """``port``, or a free one. The port of a server that is still loading is not open yet, but counts as used."""
    ours = {server.port: server.model for server in servers.all() if server.process.is_running}
    if port is None:
        while (free := free_port(host)) in ours:
            continue
        return free
    if port in ours:
        raise ServingError(f"port {port} belongs to the server of {ours[port]}; omit --port for a free one")
    return free_port(host, port)
