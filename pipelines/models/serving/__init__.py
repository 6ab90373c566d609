"""A model server: started, health-checked, stopped.

>>> engine = VllmEngine(vllm_environment(folder))
>>> server = start(workspace.local / "servers", ServedModel.parse("Qwen/Qwen3-VL-8B-Instruct"), engine)
>>> server.wait_until_ready(report=print)
>>> server.stop()
"""

from darkroom.pipelines.models.serving.engines import (
    Engine as Engine,
    ServedModel as ServedModel,
    ServingError as ServingError,
    TransformersEngine as TransformersEngine,
    VllmEngine as VllmEngine,
    vllm_cpu_environment as vllm_cpu_environment,
    vllm_environment as vllm_environment,
)
from darkroom.pipelines.models.serving.server import ModelServer as ModelServer, Progress as Progress, start as start
