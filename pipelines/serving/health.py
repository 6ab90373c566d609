"""Whether a server answers, and waiting until it does."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.serving.faults import ServingFault
from pipelines.serving.servers import Server

State = Literal["ready", "starting", "gone", "elsewhere"]
TAIL_BYTES, TAIL_LINES, POLL_SECONDS = 16_384, 15, 0.5
# a proxy that the environment names does not know this machine's servers
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Progress(NamedTuple):
    """How a start is going."""

    seconds: float
    line: str
    """The last line of the server's log."""


def state(server: Server) -> State:
    """``starting`` is a process that does not answer (yet); ``elsewhere`` was started on another machine."""
    if not server.process.is_local:
        return "elsewhere"
    if not server.process.is_running:
        return "gone"
    return "ready" if _answers(server) else "starting"


def wait_until_ready(
    server: Server, *, report: Callable[[Progress], None], patience_seconds: float = float("inf")
) -> float:
    """Returns the seconds waited. Loading may take hours, so only the process's end ends the waiting by itself.

    Raises ``ServingFault`` with the log's tail when the process dies, or when ``patience_seconds`` are over.
    """
    began = time.monotonic()
    while (found := state(server)) != "ready":
        waited = time.monotonic() - began
        if found != "starting":
            raise ServingFault(f"the server of {server.model} died {waited:.0f} s into its start. {ending(server)}")
        if waited > patience_seconds:
            raise ServingFault(f"{server.model} is not ready after {waited:.0f} s. {ending(server)}")
        lines = tail(Path(server.log))
        report(Progress(waited, lines[-1] if lines else ""))
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def ending(server: Server) -> str:
    """The end of the log, as a paragraph of an error; with the remedy for what is most often wrong."""
    lines = tail(Path(server.log))
    said = "\n".join(lines)
    hint = ""
    if "trust_remote_code" in said or "trust-remote-code" in said:
        hint = "\nThe model brings code of its own. If you trust it: darkroom serve MODEL ... -- --trust-remote-code"
    return f"The end of {server.log}:\n{said}{hint}" if lines else f"{server.log} is empty"


def tail(path: Path) -> list[str]:
    """The last lines of a log, without empty ones."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    lines = (line.rstrip() for line in text.replace("\r", "\n").split("\n"))  # progress bars return without a newline
    return [line for line in lines if line][-TAIL_LINES:]


def _answers(server: Server) -> bool:
    """``/health`` and ``/v1/models``; only vLLM's list names the model (transformers lists its cache)."""
    try:
        _get(f"{server.root_url}/health")
        models = json.loads(_get(f"{server.root_url}/v1/models"))
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError):
        return False
    return server.engine != "vllm" or server.model in _names(models)


def _names(models: Any) -> list[str]:
    return [model.get("id") for model in models.get("data", [])]


def _get(url: str) -> bytes:
    with _opener.open(url, timeout=10) as response:
        return bytes(response.read())
