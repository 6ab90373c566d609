"""A real vLLM on this machine's CPU, started and stopped by `darkroom serve --device cpu`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass
class Server:
    """A checkpoint that is served, always on the same port."""

    home: Path
    checkpoint: Path
    port: int
    words: tuple[str, ...] = ()
    """Further options of `vllm serve`."""
    starter: subprocess.Popen[str] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Of a policy that uses it, as `darkroom serve` prints them."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Ready when it returns."""
        options = ("--device", "cpu", "--context", "4096", "--port", str(self.port))
        command = [str(_BIN / "darkroom"), "serve", str(self.checkpoint), *options, "--", *self.words]
        environment = clean_environment(self.home)
        with (self.home / "serve.log").open("w") as log:
            self.starter = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.starter.stdout is not None
        lines = [self.starter.stdout.readline() for _ in range(4)]
        assert all(lines), (self.home / "serve.log").read_text()[-4000:]
        self.settings = dict(re.findall(r"export (\w+)=(\S+)", "".join(lines)))

    def stop(self) -> None:
        if self.starter is not None:
            self.starter.terminate()
            self.starter.communicate()
            self.starter = None

    def n_answers(self) -> int:
        """Requests that it has answered since it was started."""
        (log,) = (self.home / "servers").glob("*.log")
        return log.read_text(errors="replace").count('"POST /v1/chat/completions HTTP/1.1" 200')

    def kill(self) -> None:
        """With all of its processes, as a machine that fails."""
        assert self.starter is not None
        self.starter.kill()
        self.starter.communicate()
        self.starter = None
