"""Virtual environments of programs whose pins exclude ours, below ``<home>/environments`` (docs/dependencies.md)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.serving.faults import ServingFault

REQUIREMENT = "vllm==0.32.0"
"""0.33.0 asks for a certifi that not every mirror has yet. The registry's wheel and the registry's torch are both built
for CUDA 13; uv's ``--torch-backend=auto`` would change only torch (vLLM issue 44335)."""
MARKER = "darkroom-installed"
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """A folder with Python and ``requirements`` (the program's own first).

    A marker is written last, so that a killed installation starts again.
    """

    folder: Path
    requirements: tuple[str, ...]
    program_name: str
    size: str
    """How much will be downloaded, for who waits."""
    interpreter: tuple[str, ...] = ("--python", sys.executable)
    """Arguments of ``uv venv``."""

    @property
    def program(self) -> Path:
        """The program that it is made for."""
        return self.folder / "bin" / self.program_name

    @property
    def is_installed(self) -> bool:
        """Whether exactly ``requirements`` are in it."""
        marker = self.folder / MARKER
        return marker.is_file() and marker.read_text() == self._wanted and self.program.exists()

    def ensure(self) -> None:
        """Installs what is required unless it is there; uv shows its progress on stderr. Raises ``ServingFault``."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_installed:
                self._install()

    def activate(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` as it is inside of this one."""
        kept = {name: value for name, value in environment.items() if name not in OURS}
        path = f"{self.folder / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return {**kept, "VIRTUAL_ENV": str(self.folder), "PATH": path}

    @property
    def _wanted(self) -> str:
        return " ".join(self.requirements)

    def _install(self) -> None:
        uv = _find_uv()
        print(f"installing {self.requirements[0]} into {self.folder}: {self.size}, once", file=sys.stderr)
        python = str(self.folder / "bin" / "python")
        shutil.rmtree(self.folder, ignore_errors=True)  # uv clears only what is a whole environment
        self._run(uv, "venv", *self.interpreter, str(self.folder))
        self._run(uv, "pip", "install", "--python", python, *self.requirements)
        (self.folder / MARKER).write_text(self._wanted)

    def _run(self, *command: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        # 2: what the command prints to stdout is for `eval`, and uv's progress is not
        if subprocess.run(command, env=environment, stdout=2, check=False).returncode:
            raise ServingFault(
                f"could not install {self.requirements[0]} into {self.folder}: `{' '.join(command)}` failed, see above."
                " The next start tries again; what was downloaded is kept in uv's cache"
            )


def vllm_environment(folder: Path) -> VirtualEnvironment:
    """vLLM's: our own Python if it has its C headers, with which Triton compiles; else one of uv's, which have them."""
    has_headers = (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    python = ("--python", sys.executable) if has_headers else ("--managed-python", "--python", "3.12")
    return VirtualEnvironment(folder, (REQUIREMENT,), "vllm", "several gigabytes", python)


def _find_uv() -> str:
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if found is None:
        raise ServingFault("a virtual environment is made with uv, which is not installed: pip install uv")
    return found
