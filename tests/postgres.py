"""Starts a PostgreSQL from Debian's package on a free port of the loopback interface, for tests and for trying it.

    python tests/postgres.py [NAME]     # prints its URL, runs until Ctrl-C; nothing is kept

In a program: ``with postgres() as url: ...``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.ports import free_port

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


class Postgres:
    """A server in a folder, on a free port."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._as_user, self._binaries = folder, _own_user(folder), programs()
        self._port = free_port()
        self._data = str(folder / "data")
        self.url = f"postgresql://{USER}:x@127.0.0.1:{self._port}/{name}"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", USER, "--no-sync")
        self.start()
        if name != "postgres":
            self.create(name)

    def start(self) -> None:
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "-l", str(self._folder / "log"), "start")

    def create(self, name: str) -> None:
        """Another database."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self._port), "-U", USER, name)

    def kill(self) -> None:
        """As an out-of-memory killer does it: all of its processes at once, without a word."""
        first = int(Path(self._data, "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(_is_alive(pid) for pid in (first, *map(int, children))):
            time.sleep(0.05)
        for lock in (Path(self._data, "postmaster.pid"), self._folder / f".s.PGSQL.{self._port}.lock"):
            lock.unlink(missing_ok=True)  # names a zombie in a container without an init

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def _run(self, *command: str) -> None:
        program = [*self._as_user, str(self._binaries / command[0]), *command[1:]]
        # not a pipe: the server would inherit it
        subprocess.run(program, check=True, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def postgres_server(name: str = "postgres") -> Iterator[Postgres]:
    """One that can be killed and started again."""
    programs()
    with tempfile.TemporaryDirectory(prefix="postgres-") as path:
        server = Postgres(Path(path), name)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def postgres(name: str = "postgres") -> Iterator[str]:
    """An empty server with the database ``name``: ``postgresql://darkroom:x@127.0.0.1:<port>/<name>``."""
    with postgres_server(name) as server:
        yield server.url


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _own_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root; then it runs as the package's own user, whose folder it is."""
    if os.getuid() != 0:
        return []
    folder.chmod(0o755)
    shutil.chown(folder, "postgres", "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


if __name__ == "__main__":
    with postgres(*sys.argv[1:2]) as url:
        print(url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
