"""The five papers' methods of reinforcement learning, those of the user, and the settings that follow from them.

A user's method is a Python file with ``method = …`` in a folder that ``DARKROOM_METHODS`` lists; its name is the
file's: ``methods/short.py`` is ``--method short`` (docs/methods.md adds one). Each method's loss: ``rollouts/loss.py``.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.user_files import added_files, code_errors, imported
from darkroom.train.rl.judging.judges import Judges as Judges
from darkroom.train.rl.methods.base import PAPERS, Method as Method, RolloutScore as RolloutScore
from darkroom.train.rl.methods.judged import CodeVMethod, ThymeMethod
from darkroom.train.rl.methods.rule_based import AdaptiveMethod, FigrMethod, PyVisionMethod
from darkroom.train.rl.settings import METHODS_VARIABLE, GrpoSettings, MethodDefaults as MethodDefaults
from darkroom.train.runs import TrainError

_OF_PAPERS: tuple[type[Method], ...] = (ThymeMethod, PyVisionMethod, CodeVMethod, AdaptiveMethod, FigrMethod)
METHODS: Mapping[str, Callable[[], Method]] = {
    name: partial(method, **fields) if fields else method
    for method in _OF_PAPERS
    for name, fields in PAPERS[method.name]["methods"].items()
}
"""The methods by name, as ``papers.yaml`` lists them."""


def named_method(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Method:
    """A method by its name, with other values for some of its fields. Raises ``TrainError`` for an unknown name or
    field, for a value of another type, and for a file of the user's that defines no method."""
    own_files = added_methods(METHODS)
    if name not in METHODS and name not in own_files:
        raise TrainError(f"unknown method {name!r}; known: {', '.join([*METHODS, *own_files])}")
    method = METHODS[name]() if name in METHODS else _method_of(own_files[name], _digest(own_files[name]))
    own = options_of(method)
    if unknown := sorted(options.keys() - own.keys()):
        raise TrainError(f"{name} has no field {', '.join(unknown)}; it has {', '.join(own) or 'none'}")
    if not options:
        return method
    try:
        changed: Method = TypeAdapter(type(method)).validate_python({**own, **options})
    except PydanticUserError as error:
        why = str(error).splitlines()[0]
        raise TrainError(f"{name} has a field of a type that --set cannot read: {why}") from error
    except ValidationError as error:
        wrong = error.errors()[0]
        value = wrong["input"] if wrong["loc"] else dict(options)
        raise TrainError(f"{'.'.join(map(str, ('method', *wrong['loc'])))}: {wrong['msg']}; found {value!r}") from error
    return changed


def options_of(method: Method) -> dict[str, Any]:
    """The fields of a method, which ``--set`` changes, with their values."""
    return {field.name: getattr(method, field.name) for field in fields(method)}  # type: ignore[arg-type]


def settings_of(method: str, **values: Any) -> GrpoSettings:
    """Fill ``values`` from the method's terms; None is unset. Raises ``TrainError`` for contradicting values."""
    chosen = named_method(method)
    own = {name: value for name, value in values.items() if value is not None}
    terms = {"method": method, "protocol": chosen.protocol, **chosen.terms.model_dump(), **own}
    settings = GrpoSettings(**{"batch_size": terms["generations"], **terms})
    changed = named_method(method, settings.options)
    options = {name: getattr(changed, name) for name in settings.options}
    own_file = added_methods(METHODS).get(method)
    return settings.model_copy(update={"options": options, "method_file": _digest(own_file) if own_file else ""})


_NAME = re.compile(r"[a-z][a-z0-9_]*")


def added_methods(bundled: Collection[str]) -> dict[str, Path]:
    """The user's methods by name; none is imported yet. Raises ``TrainError`` for a missing folder, and for a name that
    is ``bundled``, given twice, or not in lower case."""
    files: dict[str, Path] = {}
    for path in added_files(METHODS_VARIABLE, TrainError):
        if not _NAME.fullmatch(path.stem):
            raise TrainError(f"{path}: a method is named in lower case after its file, like short.py; rename the file")
        if path.stem in bundled or path.stem in files:
            first = files.get(path.stem, "a bundled one")
            raise TrainError(f"{path}: there is a method {path.stem!r} already ({first}); rename the file")
        files[path.stem] = path
    return files


def method_errors(method: Method) -> AbstractContextManager[None]:
    """Name the file of a user's method where it raises within."""
    module = type(method).__module__
    if module.startswith("darkroom."):
        return nullcontext()
    path = Path(getattr(sys.modules[module], "__file__", module))
    return code_errors(path, TrainError, f"{type(method).__name__} failed")


def _digest(path: Path) -> str:
    return digest_bytes(path.read_bytes())


@cache
def _method_of(path: Path, digest: str) -> Method:
    """Import the method that a file defines. Raises ``TrainError``, naming the file and what it lacks."""
    method = getattr(imported(path, TrainError), "method", None)
    if not isinstance(method, Method) or not hasattr(method, "__dataclass_fields__"):
        expected = "a module-level `method = …`, a dataclass that extends darkroom.train.rl.methods.base.Method"
        raise TrainError(f"{path}: expected {expected}; found {method!r}")
    if missing := [name for name in ("says", "protocol", "terms") if not hasattr(method, name)]:
        raise TrainError(f"{path}: {type(method).__name__} lacks {', '.join(missing)}")
    if method.protocol not in PROTOCOLS:
        raise TrainError(f"{path}: unknown protocol {method.protocol!r}; known: {', '.join(PROTOCOLS)}")
    terms: object = method.terms
    if not isinstance(terms, MethodDefaults):
        raise TrainError(f"{path}: terms are MethodDefaults(generations=…, learning_rate=…); found {terms!r}")
    if type(method).score is Method.score and type(method).score_one is Method.score_one:
        raise TrainError(f"{path}: {type(method).__name__} has neither score_one nor score")
    return method
