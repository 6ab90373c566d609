"""Servers that cost nothing: the engine is real, what stands at its program's place is ``stand_in_vllm.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.models.serving import (
    ServedModel,
    ServerRegistry,
    VirtualEnvironment,
    VllmEngine,
    stop,
    vllm_cpu_environment,
    vllm_environment,
)
from darkroom.pipelines.models.serving.processes import MARKER
from darkroom.pipelines.storage.workspace import Workspace

MODEL = ServedModel("Qwen/Qwen3-VL-8B-Instruct")


def put_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def stand_in(workspace: Workspace) -> VirtualEnvironment:
    """An environment that says it is installed; its ``vllm`` is the stand-in."""
    return filled(vllm_environment(workspace.home / "environments" / "vllm"))


@pytest.fixture
def stand_in_cpu(workspace: Workspace) -> VirtualEnvironment:
    """The same for a CPU."""
    return filled(vllm_cpu_environment(workspace.home / "environments" / "vllm-cpu"))


def filled(environment: VirtualEnvironment) -> VirtualEnvironment:
    script = Path(__file__).with_name("stand_in_vllm.py")
    put_program(environment.program, f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    (environment.folder / MARKER).write_text(" ".join(environment.requirements))
    return environment


@pytest.fixture
def engine(stand_in: VirtualEnvironment) -> Callable[..., VllmEngine]:
    """The real engine on the stand-in, with a GPU claimed."""

    def _engine(*arguments: str) -> VllmEngine:
        return replace(VllmEngine(stand_in, arguments=arguments), find_gpu=lambda: True)

    return _engine


@pytest.fixture
def servers(workspace: Workspace) -> Iterator[ServerRegistry]:
    """Stops what a test leaves running."""
    made = ServerRegistry(workspace.home / "servers")
    yield made
    for server in made.all():
        if server.process.is_local:
            stop(made, server, grace_seconds=0)
