"""vLLM's own virtual environment, below ``<home>/environments/vllm``: its pins exclude ours (docs/dependencies.md)."""

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
class VllmEnvironment:
    """A folder with Python, torch and vLLM; a marker is written last, so that a killed installation starts again."""

    folder: Path

    @property
    def program(self) -> Path:
        """``vllm``."""
        return self.folder / "bin" / "vllm"

    @property
    def is_installed(self) -> bool:
        """Whether exactly ``REQUIREMENT`` is in it."""
        marker = self.folder / MARKER
        return marker.is_file() and marker.read_text() == REQUIREMENT and self.program.exists()

    def ensure(self) -> None:
        """Installs vLLM unless it is there; uv shows its progress on stderr. Raises ``ServingFault``."""
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

    def _install(self) -> None:
        uv = _find_uv()
        print(f"installing {REQUIREMENT} into {self.folder}: several gigabytes, once", file=sys.stderr)
        python = str(self.folder / "bin" / "python")
        shutil.rmtree(self.folder, ignore_errors=True)  # uv clears only what is a whole environment
        self._run(uv, "venv", *_interpreter(), str(self.folder))
        self._run(uv, "pip", "install", "--python", python, REQUIREMENT)
        (self.folder / MARKER).write_text(REQUIREMENT)

    def _run(self, *command: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        # 2: what the command prints to stdout is for `eval`, and uv's progress is not
        if subprocess.run(command, env=environment, stdout=2, check=False).returncode:
            raise ServingFault(
                f"could not install {REQUIREMENT} into {self.folder}: `{' '.join(command)}` failed, see above. "
                "The next start tries again; what was downloaded is kept in uv's cache"
            )


def _interpreter() -> tuple[str, ...]:
    """Our own Python where it has its C headers, with which Triton compiles; else one of uv's, which have them."""
    if (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return ("--python", sys.executable)
    return ("--managed-python", "--python", "3.12")


def _find_uv() -> str:
    beside = str(Path(sys.executable).parent)
    found = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if found is None:
        raise ServingFault("vLLM's environment is made with uv, which is not installed: pip install uv")
    return found
