"""The five papers' methods of reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from train.methods.adaptive import Adaptive
from train.methods.ask import Judges
from train.methods.base import Method, Scored, Terms
from train.methods.codev import CodeV
from train.methods.figr import Figr
from train.methods.pyvision import PyVision
from train.methods.thyme import Thyme

METHODS: Mapping[str, Callable[[], Method]] = {
    "thyme": Thyme,
    "thyme_code": lambda: Thyme(addition="code"),
    "thyme_process": lambda: Thyme(addition="process"),
    "thyme_released": lambda: Thyme(variant="code"),
    "pyvision": PyVision,
    "pyvision_released": lambda: PyVision(variant="code"),
    "codev": CodeV,
    "adaptive": Adaptive,
    "figr": Figr,
    "figr_released": lambda: Figr(variant="code"),
}
"""By name. ``…_released``: what the paper's released code computes, where it is not what the paper says."""

__all__ = ["METHODS", "Judges", "Method", "Scored", "Terms"]
