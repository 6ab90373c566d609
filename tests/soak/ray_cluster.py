"""A Ray cluster of several nodes on this machine, each with processes of its own that can be killed at once.

The head has no CPU, so that runs are elsewhere.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.ports import free_port
from tests.waiting import answers

_SECONDS, _LEAVING_SECONDS, _N_STARTS = 600.0, 20.0, 10
_OBJECT_STORE = 80_000_000
"""Bytes, about the least that Ray takes: runs leave nothing in it."""
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
    # it kills jobs where others use the machine's memory
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_enable_worker_prestart": "0",
    # a raylet whose agents a loaded machine has not started in half a minute would end
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_raylet_start_wait_time_s": "90",
    # a process is started for every ray:// client, and a loaded machine takes more than half a minute for it
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "600",
    # a node that dies is known to be dead in seconds, not in half a minute
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
}


@dataclass
class Node:
    """The processes of one `ray start`."""

    process: subprocess.Popen[bytes]
    log: Path

    def processes(self) -> list[psutil.Process]:
        if self.process.poll() is not None:
            return []
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def wait_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not reached():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.2)

    def kill(self) -> None:
        """As a machine goes down: every process at once, what its runs started included."""
        for member in self.processes():
            with suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class RayCluster:
    """``url``: of the dashboard, which takes jobs; ``address``: of its clients."""

    folder: Path
    environment: Mapping[str, str]
    port: int = field(default_factory=free_port)
    client_port: int = field(default_factory=free_port)
    dashboard_port: int = field(default_factory=free_port)
    nodes: list[Node] = field(default_factory=list)
    """With those that were killed."""
    head: Node = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.dashboard_port}"

    @property
    def address(self) -> str:
        return f"ray://127.0.0.1:{self.client_port}"

    def start_head(self) -> None:
        """One that knows of no nodes and jobs, as Ray's heads without Redis."""
        # with this file Ray takes the workers, which are on this machine too, for a head that is up
        (self.folder / "ray_current_cluster").unlink(missing_ok=True)
        ports = {"port": self.port, "ray-client-server-port": self.client_port, "dashboard-port": self.dashboard_port}
        words = [word for name, port in ports.items() for word in (f"--{name}", str(port))]
        here = ("--dashboard-host", "127.0.0.1", "--temp-dir", str(self.folder))
        self.head = self._started("--head", *words, *here, n_cpus=0)
        self.head.wait_until(lambda: answers(f"{self.url}/api/version"))

    def add_node(self, n_cpus: int = 1) -> Node:
        """Waits for its start: two that start at once under one address disturb one another."""
        return self._started("--address", f"127.0.0.1:{self.port}", n_cpus=n_cpus)

    def restart(self) -> None:
        """Starts another head after the first was killed. The workers leave it and are started again, as what watches
        over a machine does it."""
        workers = [node for node in self.nodes if node is not self.head and node.processes()]
        self.start_head()
        deadline = time.monotonic() + _LEAVING_SECONDS
        while any(worker.processes() for worker in workers) and time.monotonic() < deadline:
            time.sleep(0.2)
        for worker in workers:
            worker.kill()
            self.add_node()

    def node_of(self, process: psutil.Process) -> Node:
        """The node on which a process runs."""
        return next(node for node in self.nodes if process in node.processes())

    def _started(self, *words: str, n_cpus: int) -> Node:
        """Ray gives a node up that is not up in 30 s (ray 2.60), as on a loaded machine: then another is started."""
        for _ in range(_N_STARTS):
            node = self._start(*words, n_cpus=n_cpus)
            while node.process.poll() is None:
                if "Ray runtime started" in node.log.read_text():
                    return node
                time.sleep(0.2)
        raise AssertionError(node.log.read_text()[-3000:])

    def _start(self, *words: str, n_cpus: int) -> Node:
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats", *words]
        command += ["--num-cpus", str(n_cpus), "--object-store-memory", str(_OBJECT_STORE)]
        command += ["--dashboard-agent-listen-port", str(free_port()), "--node-ip-address", "127.0.0.1"]
        path = self.folder / f"node-{len(self.nodes)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                command, env={**self.environment, **_ENVIRONMENT}, stdout=log, stderr=log, start_new_session=True
            )
        self.nodes.append(Node(process, path))
        return self.nodes[-1]


@contextmanager
def ray_cluster(environment: Mapping[str, str] = os.environ, *, n_workers: int = 0) -> Iterator[RayCluster]:
    """A head and ``n_workers`` nodes with one CPU each; all are killed at the end."""
    # a short path: it holds the cluster's sockets, whose paths have at most 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    cluster = RayCluster(folder, environment)
    try:
        cluster.start_head()
        for _ in range(n_workers):
            cluster.add_node()
        yield cluster
    finally:
        for node in cluster.nodes:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
