"""The mock endpoint from outside: started, set, asked for its counts; and clients that are set to work on it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self


class MockEndpoint:
    """``tests.mock_server`` in a process of its own, while the context lasts."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.mock_server"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._root = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # it ends with its standard input

    @property
    def url(self) -> str:
        return f"{self._root}/v1"

    def reset(self, **settings: Any) -> None:
        self._post("reset", settings)

    def hold(self, n_more: int | None) -> None:
        """Lets calls wait after so many more answers; None: no longer."""
        self._post("hold", {"n_more": n_more})

    def kill(self, group: int, wait: Callable[[], object]) -> None:
        """Kills a group of clients and waits until the endpoint has noticed the closed connections."""
        os.killpg(group, signal.SIGKILL)
        wait()
        while self.counts()["in_flight"]:
            time.sleep(0.005)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(f"{self._root}/{path}", json.dumps(body).encode(), method="POST")
        urllib.request.urlopen(request).close()

    def counts(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._root}/counts") as response:
            counts: dict[str, Any] = json.load(response)
        return counts

    def typical_in_flight(self) -> int:
        """The number of calls in flight, or fewer, for half of the time that any was."""
        seconds_with = {int(n): seconds for n, seconds in self.counts()["seconds_with"].items() if int(n) > 0}
        left = sum(seconds_with.values()) / 2
        for n in sorted(seconds_with):
            left -= seconds_with[n]
            if left <= 0:
                return n
        return 0

    def run(self, kind: str, folder: Path, n_rows: int) -> dict[str, Any]:
        """The figures of a client, when it is done."""
        return self._run([sys.executable, "-m", "measurements.policy_client", kind], folder, n_rows)

    def _run(self, client: list[str], folder: Path, n_rows: int) -> dict[str, Any]:
        command = [*client, self.url, str(folder), str(n_rows)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(client)} ended with {done.returncode}")
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures
