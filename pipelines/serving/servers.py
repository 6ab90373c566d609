"""The servers that were started: one JSON file each below ``<home>/servers``, beside its log.

    {"model": "Qwen/Qwen3-VL-8B-Instruct", "engine": "vllm", "host": "127.0.0.1", "port": 41873, "options": [...],
     "revision": "", "log": ".../Qwen-Qwen3-VL-8B-Instruct-0c5f2b1d.log", "started": "2026-03-01T09:30:00+00:00",
     "process": {"host": "...", "boot": "...", "pid": 4711, "start_ticks": 81234}}

The file is there before the program runs and goes when it is stopped; whether the server still runs, the process says.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import cattrs

from pipelines.digest import digest
from pipelines.serving.addresses import url_of
from pipelines.serving.faults import ServingFault
from pipelines.serving.processes import ProcessMark


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started: what it serves, where, and which process it is."""

    model: str
    engine: str
    host: str
    port: int
    options: tuple[str, ...]
    """How it was started, besides model and address: two starts with the same options want the same server."""
    revision: str
    """Of a folder: its fingerprint; of a hub model: the commit, once it is loaded; empty where that is not known."""
    log: str
    started: str
    """ISO 8601, UTC."""
    process: ProcessMark

    @property
    def root_url(self) -> str:
        """Where it answers, as seen from this machine."""
        return url_of(self.host, self.port)

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables by which the toolkit asks it."""
        named = {
            "DARKROOM_POLICY": "openai",
            "DARKROOM_POLICY_URL": f"{self.root_url}/v1",
            "DARKROOM_POLICY_MODEL": self.model,
        }
        return {**named, "DARKROOM_POLICY_REVISION": self.revision} if self.revision else named


class Servers:
    """The servers of one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Server]:
        """By name of the model. Raises ``ServingFault`` for a file that cannot be read."""
        return sorted((_load(path) for path in self.folder.glob("*.json")), key=lambda server: server.model)

    def find(self, model: str) -> Server | None:
        """The server of a model, running or gone."""
        path = self.path(model)
        return _load(path) if path.exists() else None

    def write(self, server: Server) -> None:
        """Whole or not at all, and on the disk when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{uuid4().hex}.part"
        with part.open("w") as file:
            json.dump(asdict(server), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path(server.model))

    def remove(self, server: Server) -> None:
        """Forgets a server; its log stays."""
        self.path(server.model).unlink(missing_ok=True)

    def path(self, model: str) -> Path:
        """Where a model's server is written down."""
        readable = re.sub(r"[^A-Za-z0-9.]+", "-", model)[-48:].strip("-.")
        return self.folder / f"{readable}-{digest(model)[:8]}.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One starter or stopper at a time; the kernel lets go of the lock when its holder dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _load(path: Path) -> Server:
    try:
        return cattrs.structure(json.loads(path.read_text()), Server)
    except (ValueError, KeyError, TypeError, cattrs.BaseValidationError) as fault:
        raise ServingFault(f"{path} is not the record of a server; if its server is gone, remove the file") from fault
