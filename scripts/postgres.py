"""Starts a PostgreSQL from Debian's package on a free port of the loopback interface, for tests and for trying it.

    python scripts/postgres.py [NAME]     # prints its URL, runs until Ctrl-C; nothing is kept

In a program: ``with postgres() as url: ...``.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "darkroom"


class PostgresMissing(Exception):
    """The package is not installed; says what installs it."""


def programs() -> Path:
    """The folder of its programs. Raises ``PostgresMissing``."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise PostgresMissing(
            "postgresql is not installed: scripts/install_debian_packages postgresql (`make e2e` does)"
        )
    return found[-1]


@contextmanager
def postgres(name: str = "postgres") -> Iterator[str]:
    """An empty server with the database ``name``: ``postgresql://darkroom:x@127.0.0.1:<port>/<name>``."""
    binaries = programs()
    with tempfile.TemporaryDirectory(prefix="postgres-") as path:
        folder, as_user = Path(path), _own_user(Path(path))
        port = _free_port()

        def run(*command: str) -> None:
            subprocess.run(
                [*as_user, str(binaries / command[0]), *command[1:]], check=True, cwd=folder, capture_output=True
            )

        data = str(folder / "data")
        run("initdb", "-D", data, "-A", "trust", "-U", USER, "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            if name != "postgres":
                run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", USER, name)
            yield f"postgresql://{USER}:x@127.0.0.1:{port}/{name}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def _own_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root; then it runs as the package's own user, whose folder it is."""
    if os.getuid() != 0:
        return []
    folder.chmod(0o755)
    shutil.chown(folder, "postgres", "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    with postgres(*sys.argv[1:2]) as url:
        print(url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
