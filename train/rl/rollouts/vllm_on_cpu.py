"""vLLM in the training process on a CPU: it computes with the trainer's weights, in the trainer's precision."""

from functools import partial
from typing import Any

import torch


def prepare_vllm() -> None:
    """Called before a trainer makes its engine.

    The engine computes in float32 as the trainer does, and is not compiled, for which it would need a C++ compiler.

    Where the CPU has AVX-512, vLLM 0.31 computes with copies that oneDNN has packed, and drops the weights themselves.
    A later update fails then ("'Parameter' object has no attribute 'weight_loader'"), or does nothing (output head).
    Here torch computes with the weights.
    """
    from trl.generation import vllm_generation
    from vllm.model_executor.layers import utils

    def compute_with_weights(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = compute_with_weights
    engines: Any = vllm_generation
    engines.LLM = partial(engines.LLM, dtype="float32", enforce_eager=True)
