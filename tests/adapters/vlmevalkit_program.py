"""VLMEvalKit's own command line.

It imports torchvision, whose wheels on PyPI hold operators for CUDA alone; beside a CPU build of torch their import
fails unless two of them are declared. Nothing here calls them.
"""

import runpy

import torch

operators = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
runpy.run_module("vlmeval.run", run_name="__main__", alter_sys=True)
