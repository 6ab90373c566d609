"""Virtual environments below ``<home>/environments``, for programs whose pins conflict with ours."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from darkroom.pipelines.processes.process_sessions import ProcessError
from darkroom.pipelines.storage.atomic_write import one_at_a_time

MARKER = "darkroom-installed"
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """A folder with Python and ``requirements`` (the program's own first); a marker file is written last."""

    folder: Path
    requirements: tuple[str, ...]
    program_name: str
    size: str
    """Size of the download, for the progress message."""
    interpreter: tuple[str, ...] = ("--python", sys.executable)
    """Arguments of ``uv venv``."""
    is_complete: bool = False
    """Whether ``requirements`` name every package; else uv adds what they require."""

    @property
    def program(self) -> Path:
        return self.folder / "bin" / self.program_name

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def is_installed(self) -> bool:
        """True if exactly ``requirements`` are in it."""
        marker = self.folder / MARKER
        return marker.is_file() and marker.read_text() == " ".join(self.requirements) and self.program.exists()

    def ensure(self, *, log: Path | None = None) -> None:
        """Install the requirements unless they are there. Raises ``ProcessError``."""
        with one_at_a_time(self.folder.with_suffix(".lock")):
            if not self.is_installed:
                self._install(log)

    def activate(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with this virtual environment active."""
        path = f"{self.folder / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return {**_without_ours(environment), "VIRTUAL_ENV": str(self.folder), "PATH": path}

    def _install(self, log: Path | None) -> None:
        uv = _find_uv()
        if log is None:
            print(f"installing {self.requirements[0]} into {self.folder}: {self.size}, once", file=sys.stderr)
        else:
            log.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)  # uv clears only what is a whole environment
        self._run(uv, "venv", *self.interpreter, str(self.folder), log=log)
        self._fill(uv, log)
        (self.folder / MARKER).write_text(" ".join(self.requirements))

    def _fill(self, uv: str, log: Path | None) -> None:
        alone = ("--no-deps",) if self.is_complete else ()
        self._run(uv, "pip", "install", "--python", self.python, *alone, *self.requirements, log=log)

    def _run(self, *command: str, log: Path | None) -> None:
        # 2: stdout is for `eval`, uv's progress is not
        with nullcontext(2) if log is None else log.open("a") as output:
            errors = subprocess.STDOUT if log else None
            ended = subprocess.run(command, env=_without_ours(os.environ), stdout=output, stderr=errors, check=False)
        if ended.returncode:
            tool, where = " ".join(command[:3]), "above" if log is None else str(log)
            failure = f"could not install {self.requirements[0]} into {self.folder}: `{tool} …` failed, see {where}"
            raise ProcessError(f"{failure}. The next start tries again; what was downloaded is kept in uv's cache")


def _without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in OURS}


def _find_uv() -> str:
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if uv is None:
        raise ProcessError("a virtual environment is made with uv, which is not installed: pip install uv")
    return uv
