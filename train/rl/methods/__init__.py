"""The five papers' methods of reinforcement learning, and the settings that follow from them."""

from collections.abc import Callable, Mapping
from typing import Any

from train.rl.judging.judges import Judges
from train.rl.methods.adaptive import AdaptiveMethod
from train.rl.methods.base import Method, RolloutScore
from train.rl.methods.codev import CodeVMethod
from train.rl.methods.figr import FigrMethod
from train.rl.methods.pyvision import PyVisionMethod
from train.rl.methods.thyme import ThymeMethod
from train.rl.settings import GrpoSettings, MethodDefaults
from train.runs import TrainError

METHODS: Mapping[str, Callable[[], Method]] = {
    "thyme": ThymeMethod,
    "thyme_code": lambda: ThymeMethod(addition="code"),
    "thyme_process": lambda: ThymeMethod(addition="process"),
    "thyme_released": lambda: ThymeMethod(variant="code"),
    "pyvision": PyVisionMethod,
    "pyvision_released": lambda: PyVisionMethod(variant="code"),
    "codev": CodeVMethod,
    "adaptive": AdaptiveMethod,
    "figr": FigrMethod,
    "figr_released": lambda: FigrMethod(variant="code"),
}
"""By name. ``…_released``: what the paper's released code computes, where it is not what the paper says."""

__all__ = ["METHODS", "Judges", "Method", "MethodDefaults", "RolloutScore", "named_method", "settings_of"]


def named_method(name: str) -> Method:
    """A method by its name. Raises ``TrainError`` for an unknown one."""
    if name not in METHODS:
        raise TrainError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]()


def settings_of(method: str, **values: Any) -> GrpoSettings:
    """``values`` over the method's terms; None is unset. Raises ``TrainError`` for values that do not fit together."""
    chosen = named_method(method)
    own = {name: value for name, value in values.items() if value is not None}
    terms = {"method": method, "protocol": chosen.protocol, **chosen.terms.model_dump(), **own}
    return GrpoSettings(**{"batch_size": terms["generations"], **terms})
