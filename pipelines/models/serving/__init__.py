"""A model server: started, health-checked, stopped.

>>> engine = VllmEngine(vllm_environment(folder))
>>> server = start(workspace.local / "servers", ServedModel.parse("Qwen/Qwen3-VL-8B-Instruct"), engine)
>>> server.wait_until_ready(report=print)
>>> server.stop()
"""

from darkroom.pipelines.models.serving.engines import (
    Engine,
    ServedModel,
    ServingError,
    TransformersEngine,
    VllmEngine,
    vllm_cpu_environment,
    vllm_environment,
)
from darkroom.pipelines.models.serving.server import ModelServer, Progress, start

__all__ = [
    "Engine",
    "ModelServer",
    "Progress",
    "ServedModel",
    "ServingError",
    "TransformersEngine",
    "VllmEngine",
    "start",
    "vllm_cpu_environment",
    "vllm_environment",
]
