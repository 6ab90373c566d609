"""A model server: started, health-checked, stopped; it outlives its starter.

>>> servers = ServerRegistry(workspace.local / "servers")
>>> started = start(servers, ServedModel.parse("Qwen/Qwen3-VL-8B-Instruct"), VllmEngine(vllm_environment(folder)))
>>> wait_until_ready(started.server, report=print)
>>> stop(servers, started.server)
"""

from darkroom.pipelines.models.serving.engines import Engine, ServedModel, TransformersEngine, VllmEngine
from darkroom.pipelines.models.serving.lifecycle import Progress, Started, start, state, stop, wait_until_ready
from darkroom.pipelines.models.serving.processes import ServingError, VirtualEnvironment
from darkroom.pipelines.models.serving.servers import ModelServer, ServerRegistry
from darkroom.pipelines.models.serving.vllm_environments import vllm_cpu_environment, vllm_environment

__all__ = [
    "Engine",
    "ModelServer",
    "Progress",
    "ServedModel",
    "ServerRegistry",
    "ServingError",
    "Started",
    "TransformersEngine",
    "VirtualEnvironment",
    "VllmEngine",
    "start",
    "state",
    "stop",
    "vllm_cpu_environment",
    "vllm_environment",
    "wait_until_ready",
]
