"""What answers: ``vllm serve`` in an environment of its own, or ``transformers serve`` from this one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipelines.serving.environments import VirtualEnvironment
from pipelines.serving.faults import ServingFault
from pipelines.serving.gpus import has_nvidia_gpu
from pipelines.serving.models import ServedModel

NO_GPU = (
    "vLLM needs an NVIDIA GPU, and this machine shows none (nothing in /dev/nvidia*, nothing listed by nvidia-smi). "
    "Nothing was installed. Either serve a small model on the CPU: darkroom serve MODEL --engine transformers; or run "
    "the server on a machine with a GPU and set DARKROOM_POLICY_URL to its http://HOST:PORT/v1"
)
OWN_FLAGS = ("--host", "--port", "--served-model-name", "--uds", "--api-key")
"""What the toolkit must know about a server: not to be changed behind its back."""


class Engine(Protocol):
    """A program that serves a model."""

    @property
    def name(self) -> str:
        """``vllm`` or ``transformers``."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """Every argument besides the model and the address; of two that contradict, the program takes the last."""
        ...

    def prepare(self) -> None:
        """Installs what is missing. Raises ``ServingFault`` where the engine cannot run, before any download."""
        ...

    def command(self, model: ServedModel, *, host: str, port: int) -> list[str]:
        """What to run."""
        ...

    def environment(self, model: ServedModel) -> dict[str, str]:
        """In which environment."""
        ...


@dataclass(frozen=True, slots=True)
class TransformersEngine:
    """``transformers serve``: any size of model on the CPU that patience allows, one request at a time."""

    arguments: tuple[str, ...] = ()
    name: str = "transformers"

    @property
    def options(self) -> tuple[str, ...]:
        """What the user passed through."""
        return self.arguments

    def prepare(self) -> None:
        """Raises ``ServingFault`` when the extra is not installed."""
        if not self._program.exists():
            raise ServingFault("`transformers serve` comes with the extra: pip install 'darkroom-toolkit[train]'")

    def command(self, model: ServedModel, *, host: str, port: int) -> list[str]:
        """Device and dtype are left to it: the GPU if there is one, the weights' own dtype."""
        return [str(self._program), "serve", model.name, "--host", host, "--port", str(port), *self.options]

    def environment(self, model: ServedModel) -> dict[str, str]:
        """The user's; the hub's cache folder is made, without which the server's ``/v1/models`` fails."""
        from huggingface_hub.constants import HF_HUB_CACHE

        Path(HF_HUB_CACHE).mkdir(parents=True, exist_ok=True)
        return _base_environment(model)

    @property
    def _program(self) -> Path:
        return Path(sys.executable).with_name("transformers")


@dataclass(frozen=True, slots=True)
class VllmEngine:
    """``vllm serve``, set up for trajectories: long conversations that grow, with many images and no video.

    ``context`` is the longest conversation in tokens, "auto" for what the model and the GPU's memory allow;
    ``images`` is the most images in one conversation.
    """

    installed: VirtualEnvironment
    context: str = "auto"
    images: int = 32
    arguments: tuple[str, ...] = ()
    name: str = "vllm"
    find_gpu: Callable[[], bool] = has_nvidia_gpu

    @property
    def options(self) -> tuple[str, ...]:
        """Flags of ``vllm serve``; the user's come last.

        Prefix caching, since every round repeats the ones before; no memory for videos, which never leave the
        sandbox; no defaults from the model's ``generation_config.json``, since a trajectory's provenance names all
        sampling there was.
        """
        return (
            *("--max-model-len", self.context),
            *("--limit-mm-per-prompt", json.dumps({"image": self.images, "video": 0})),
            "--enable-prefix-caching",
            *("--generation-config", "vllm"),
            *self.arguments,
        )

    def prepare(self) -> None:
        """Looks for a GPU, then makes the environment unless it is there."""
        if not self.find_gpu():
            raise ServingFault(NO_GPU)
        self.installed.ensure()

    def command(self, model: ServedModel, *, host: str, port: int) -> list[str]:
        """``vllm serve MODEL`` under the model's own name."""
        address = ("--host", host, "--port", str(port), "--served-model-name", model.name)
        return [str(self.installed.program), "serve", model.name, *address, *self.options]

    def environment(self, model: ServedModel) -> dict[str, str]:
        """The user's without our virtual environment: its own programs (ninja for kernels) come first."""
        return self.installed.activate(_base_environment(model))


def refuse_own_flags(arguments: tuple[str, ...]) -> None:
    """Raises ``ServingFault`` when an argument after ``--`` would change what the toolkit knows of the server."""
    for argument in arguments:
        flag = argument.split("=")[0].replace("_", "-")  # vLLM takes both spellings
        if flag in OWN_FLAGS:
            raise ServingFault(
                f"{flag} cannot be passed through: --host and --port go before --, the model's name is MODEL, and a "
                "key needs a server of your own (set DARKROOM_POLICY_URL and DARKROOM_POLICY_KEY)"
            )


def _base_environment(model: ServedModel) -> dict[str, str]:
    """The user's environment, telemetry off; a folder is served without asking the hub, which may be out of reach."""
    offline = {"HF_HUB_OFFLINE": "1"} if model.is_folder else {}
    return {**offline, "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONUNBUFFERED": "1", **os.environ}
