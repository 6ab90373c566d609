"""What a server keeps over restarts and crashes: its account, its secret key, and the address of open pages."""

import json
import secrets
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from darkroom.pipelines.processes.ports import free_port
from darkroom.pipelines.processes.process_sessions import ProcessError
from darkroom.pipelines.storage.atomic_write import write_whole

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 5.0
"""For the port of the last start."""


class AdminAccount(NamedTuple):
    """The toolkit's own account."""

    email: str
    password: str
    token: str


class Address(NamedTuple):
    """Where the server listens."""

    host: str
    port: int

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def admin_account(folder: Path) -> AdminAccount:
    """The account of ``<folder>/admin.json``; created at the first call."""
    path = folder / "admin.json"
    if not path.exists():
        account = AdminAccount("admin@darkroom.local", secrets.token_urlsafe(18), secrets.token_hex(20))
        write_whole(path, json.dumps(account._asdict(), indent=1), mode=0o600)
    return AdminAccount(**json.loads(path.read_text()))


def secret_key(folder: Path) -> str:
    """Signs sessions; created at the first call. An older campaign's is Label Studio's own, from its data folder.

    Label Studio cannot read back every key that it makes: one that starts with ``$`` changes at each start.
    """
    path = folder / "secret_key"
    if not path.exists():
        settings = folder / "studio" / ".env"
        lines = settings.read_text().splitlines() if settings.exists() else []
        keys = [line.partition("=")[2] for line in lines if line.startswith("SECRET_KEY=")]
        usable = [key for key in keys if key and key[0] not in "$'\""]
        write_whole(path, usable[0] if usable else secrets.token_urlsafe(40), mode=0o600)
    return path.read_text()


def select_address(folder: Path, host: str | None, port: int | None, *, last_url: str | None = None) -> Address:
    """As asked for, else the one of the last start (``last_url`` without a file), else a free port of the loopback.

    Raises ``ProcessError`` when the port is taken.
    """
    path = folder / "address.json"
    kept = Address(**json.loads(path.read_text())) if path.exists() else _parse_url(last_url)
    host = host or (kept.host if kept else LOOPBACK)
    if port is None and kept is not None:
        port = _freed_port(host, kept.port)
    address = Address(host, free_port(host, port))
    write_whole(path, json.dumps(address._asdict()))
    return address


def _freed_port(host: str, port: int) -> int:
    """Waits a moment: threads of a killed server hold its port a little longer than its processes are there."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return free_port(host, port)
        except ProcessError as error:
            if time.monotonic() > end:
                raise ProcessError(
                    f"another program listens on port {port}, where this campaign's server was: open pages expect it "
                    "there. Stop that program, or choose another port with --port"
                ) from error
        time.sleep(0.1)


def _parse_url(url: str | None) -> Address | None:
    parts = urlsplit(url or "")
    return Address(parts.hostname, parts.port) if parts.hostname and parts.port else None
