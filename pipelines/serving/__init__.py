"""A model server of the toolkit's own: started, health-checked, stopped; it outlives whoever started it.

>>> servers = Servers(workspace.home / "servers")
>>> started = start(servers, ServedModel.parse("Qwen/Qwen3-VL-8B-Instruct"), VllmEngine(vllm_environment(folder)))
>>> wait_until_ready(started.server, report=print)
>>> stop(servers, started.server)
"""

from pipelines.serving.engines import Engine, TransformersEngine, VllmEngine
from pipelines.serving.environments import VirtualEnvironment, vllm_environment
from pipelines.serving.faults import ServingFault
from pipelines.serving.health import Progress, state, wait_until_ready
from pipelines.serving.launch import Started, start, stop
from pipelines.serving.models import ServedModel
from pipelines.serving.servers import Server, Servers

__all__ = [
    "Engine",
    "Progress",
    "ServedModel",
    "Server",
    "Servers",
    "ServingFault",
    "Started",
    "TransformersEngine",
    "VirtualEnvironment",
    "VllmEngine",
    "start",
    "state",
    "stop",
    "vllm_environment",
    "wait_until_ready",
]
