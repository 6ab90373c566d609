"""The five papers' methods of reinforcement learning, and the settings that follow from them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

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
    "thyme_without_consistency": lambda: ThymeMethod(addition="none"),
    "thyme_code": lambda: ThymeMethod(addition="code"),
    "thyme_process": lambda: ThymeMethod(addition="process"),
    "thyme_released": lambda: ThymeMethod(variant="code"),
    "pyvision": PyVisionMethod,
    "pyvision_without_tool_reward": lambda: PyVisionMethod(reward_per_call=0.0),
    "pyvision_released": lambda: PyVisionMethod(variant="code"),
    "codev": CodeVMethod,
    "codev_accuracy_only": lambda: CodeVMethod(weight_tool=0.0),
    "adaptive": AdaptiveMethod,
    "figr": FigrMethod,
    "figr_without_suitability": lambda: FigrMethod(by_suitability=False),
    "figr_released": lambda: FigrMethod(variant="code"),
}
"""By name. ``…_released``: what the paper's released code computes, where it is not what the paper says. The other
additions are the papers' ablations."""

__all__ = ["METHODS", "Judges", "Method", "MethodDefaults", "RolloutScore", "named_method", "settings_of"]


def named_method(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Method:
    """A method by its name, with other values for some of its fields.

    Raises ``TrainError`` for an unknown name or field, and for a value of another type.
    """
    if name not in METHODS:
        raise TrainError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    method = METHODS[name]()
    own = options_of(method)
    if unknown := sorted(options.keys() - own.keys()):
        raise TrainError(f"{name} has no field {', '.join(unknown)}; it has {', '.join(own) or 'none'}")
    try:
        made: Method = TypeAdapter(type(method)).validate_python({**own, **options})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise TrainError(
            f"method.{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}; found {wrong['input']!r}"
        ) from error
    return made


def options_of(method: Method) -> dict[str, Any]:
    """The fields of a method, which ``--set`` changes, with their values."""
    return {field.name: getattr(method, field.name) for field in fields(method)}  # type: ignore[arg-type]


def settings_of(method: str, **values: Any) -> GrpoSettings:
    """``values`` over the method's terms; None is unset. Raises ``TrainError`` for values that do not fit together."""
    chosen = named_method(method)
    own = {name: value for name, value in values.items() if value is not None}
    terms = {"method": method, "protocol": chosen.protocol, **chosen.terms.model_dump(), **own}
    settings = GrpoSettings(**{"batch_size": terms["generations"], **terms})
    made = named_method(method, settings.options)
    return settings.model_copy(update={"options": {name: getattr(made, name) for name in settings.options}})
