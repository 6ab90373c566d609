"""A real vLLM on this machine's CPU, started and stopped by `darkroom serve --device cpu`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from darkroom.pipelines.models.serving import ServerRegistry

ROOT = Path(__file__).resolve().parents[2]
_BIN = Path(sys.executable).parent


def clean_environment(home: Path) -> dict[str, str]:
    """Of a user who has set nothing but where data and environments lie."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    environments = os.environ.get("DARKROOM_ENVIRONMENTS", str(ROOT / "data" / "environments"))
    return {**kept, "DARKROOM_HOME": str(home), "DARKROOM_ENVIRONMENTS": environments, "HF_HUB_OFFLINE": "1"}


def run(home: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment that the tests run in, to its end."""
    program = [str(_BIN / command[0]), *command[1:]]
    environment = clean_environment(home) | settings
    return subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Server:
    """A checkpoint that is served, always on the same port."""

    home: Path
    checkpoint: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> subprocess.CompletedProcess[str]:
        """Ready when it returns; prints the settings of a policy that uses it."""
        options = ("--device", "cpu", "--context", "4096", "--port", str(self.port), "--detach")
        done = run(self.home, "darkroom", "serve", str(self.checkpoint), *options)
        assert done.returncode == 0, done.stderr[-4000:]
        return done

    def stop(self) -> None:
        run(self.home, "darkroom", "serve", "--stop")

    def settings(self) -> dict[str, str]:
        """Of a policy that uses it, as `darkroom serve` prints them."""
        return dict(re.findall(r"export (\w+)=(\S+)", self.start().stdout))

    def n_answers(self) -> int:
        """Requests that it has answered since it was started."""
        (log,) = (self.home / "servers").glob("*.log")
        return log.read_text(errors="replace").count('"POST /v1/chat/completions HTTP/1.1" 200')

    def kill(self) -> None:
        """With all of its processes, as a machine that fails."""
        (server,) = ServerRegistry(self.home / "servers").all()
        for pid in server.process.members():
            os.kill(pid, signal.SIGKILL)
