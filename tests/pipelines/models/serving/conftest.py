"""Servers that cost nothing: the engine is real, what stands at its program's place is ``stand_in_vllm.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.models.serving import (
    ModelServer,
    ServedModel,
    VllmEngine,
    start,
    vllm_cpu_environment,
    vllm_environment,
)
from darkroom.pipelines.processes.process_sessions import stop_session
from darkroom.pipelines.processes.virtual_environment import MARKER, VirtualEnvironment
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


Start = Callable[..., ModelServer]


@pytest.fixture
def start_server(workspace: Workspace) -> Iterator[Start]:
    """Starts servers, and stops those that a test leaves running."""
    started: list[ModelServer] = []

    def _start(model: ServedModel, engine: VllmEngine, **address: Any) -> ModelServer:
        started.append(start(workspace.home / "servers", model, engine, **address))
        return started[-1]

    yield _start
    for server in started:
        stop_session(server.process.mark, grace_seconds=0)
