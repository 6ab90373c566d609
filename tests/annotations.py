"""Annotations that are read as text (``from __future__ import annotations``) name types that there are."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any, get_type_hints


def annotated_with(module: ModuleType) -> dict[str, dict[str, Any]]:
    """Evaluate the annotations of all functions, methods and fields of a module, by qualified name."""
    own = [item for item in vars(module).values() if getattr(item, "__module__", "") == module.__name__]
    classes = [item for item in own if inspect.isclass(item)]
    members = [member for item in classes for member in vars(item).values()]
    callables = [getattr(member, "fget", None) or getattr(member, "func", None) or member for member in members]
    functions = [inspect.unwrap(getattr(item, "__func__", item)) for item in (*own, *callables)]
    everything = {item.__qualname__: item for item in (*classes, *filter(inspect.isfunction, functions))}
    return {name: get_type_hints(item) for name, item in everything.items()}
