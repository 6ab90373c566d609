"""Records of started servers: one JSON file each below ``<home>/servers``, beside its log.

    {"model": "Qwen/Qwen3-VL-8B-Instruct", "engine": "vllm", "host": "127.0.0.1", "port": 41873, "options": [...],
     "revision": "", "log": ".../Qwen-Qwen3-VL-8B-Instruct-0c5f2b1d.log", "started": "2026-03-01T09:30:00+00:00",
     "process": {"host": "...", "boot": "...", "pid": 4711, "start_ticks": 81234}}

The file exists before the program starts and is removed when it is stopped; whether the server runs is read from
``process``.
"""

import fcntl
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import cattrs

from darkroom.pipelines.models.serving.processes import ProcessMark, ServingError
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import write_whole

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen on, and the one to connect to instead."""


def url_of(host: str, port: int) -> str:
    """The URL on this machine of a server that listens on ``host``."""
    address = WILDCARDS.get(host, host)
    return f"http://{f'[{address}]' if ':' in address else address}:{port}"


def free_port(host: str, port: int | None = None) -> int:
    """``port`` if it can be opened, or a free one. Raises ``ServingError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection in TIME_WAIT does not matter
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise ServingError(
                f"cannot listen on {host} port {port or 0} ({error.strerror}); omit --port for a free one"
            ) from error
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A started server: its model, address and process."""

    model: str
    engine: str
    host: str
    port: int
    options: tuple[str, ...]
    """Start options besides model and address: two starts with the same options share a server."""
    revision: str
    """Fingerprint of a folder, or commit of a hub model once it is loaded; empty where unknown."""
    log: str
    started: str
    """ISO 8601, UTC."""
    process: ProcessMark

    @property
    def root_url(self) -> str:
        """Its URL on this machine."""
        return url_of(self.host, self.port)

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that make it the policy."""
        from darkroom.pipelines.models.policies.settings import (
            EndpointSettings,  # imports the ledger and the image store
        )

        values = {"kind": "openai", "base_url": f"{self.root_url}/v1", "model": self.model, "revision": self.revision}
        variables = EndpointSettings.variables("DARKROOM_POLICY")
        return {variables[field]: value for field, value in values.items() if value}


class ServerRegistry:
    """The servers of one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[ModelServer]:
        """Sorted by model. Raises ``ServingError`` for an unreadable file."""
        return sorted((_load(path) for path in self.folder.glob("*.json")), key=lambda server: server.model)

    def find(self, model: str) -> ModelServer | None:
        """The server of a model, running or not."""
        path = self.path(model)
        return _load(path) if path.exists() else None

    def write(self, server: ModelServer) -> None:
        write_whole(self.path(server.model), json.dumps(asdict(server), indent=1))

    def remove(self, server: ModelServer) -> None:
        """Removes the record; the log stays."""
        self.path(server.model).unlink(missing_ok=True)

    def path(self, model: str) -> Path:
        """The record of a model's server."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", model)[-48:].strip("-.")
        return self.folder / f"{readable}-{digest(model)[:8]}.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while a server is started or stopped; the kernel releases it when its holder dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _load(path: Path) -> ModelServer:
    try:
        return cattrs.structure(json.loads(path.read_text()), ModelServer)
    except (ValueError, KeyError, TypeError, cattrs.BaseValidationError) as error:
        raise ServingError(f"{path} is not the record of a server; if its server is gone, remove the file") from error
