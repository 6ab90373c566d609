"""The command line of the training programs: options from settings models, recipe files, readable errors, no network.

    @takes_settings
    def main(output: Path, settings: Annotated[Values, SftSettings]) -> None: ...     # --epochs, --batch-size, …

Programs import the heavy libraries inside functions: `--help` answers at once, and ``ENVIRONMENT`` is set before these
libraries read it.
"""

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import EllipsisType
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer
import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from darkroom.pipelines.processes.supervisor import JobDirectory, die_with_parent
from darkroom.sandbox.errors import UserError

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",  # models and datasets are folders: nothing is ever downloaded
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",  # GRPO with an environment is experimental in TRL 1.16; the pin holds it still
}


Values = dict[str, Any]
"""Values of a settings model by field, as the command line and its files set them; unset optional fields are absent."""


@dataclass(frozen=True, slots=True)
class Flag:
    """In a field's ``Annotated``: how the command line writes it where that differs from its name and type."""

    name: str = ""
    """Of the option and its key in YAML files."""
    type: Any = None
    default: Any | EllipsisType = ...
    declaration: str = ""
    """As in ``--ats/--no-ats``."""
    hidden: bool = False
    """The program sets the field itself."""


class ProgramSettings(BaseModel):
    """Base of the settings of a training program. A field's description is its help text on every surface."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    filled_later: ClassVar[frozenset[str]] = frozenset()
    """Fields whose default is decided elsewhere: on the command line they have none."""


def local_datasets(names: Sequence[str]) -> list[Path]:
    """Folders, and local copies of URLs (below DARKROOM_LOCAL). Raises ``StorageError``."""
    from darkroom.pipelines.storage.workspace import Workspace  # heavy, for --help

    return [Workspace.from_environment().local_dataset(name) if "://" in name else Path(name) for name in names]


MaxPixels = Annotated[
    int | None,
    Field(ge=784, description="Scale larger images down to this many pixels; default: the model's own limit."),
]

Bf16Weights = Annotated[
    bool,
    Field(
        description="On a GPU, keep all weights in bfloat16: half the memory, but at the papers' RL rates few of them "
        "move. LoRA's base weights are so anyway."
    ),
]


_LATER = {
    *("trainer", "bf16_weights", "loss_policy", "without_comments", "options", "method_file"),
    *(f"repetition{field}" for field in ("", "_chars", "_share", "_times", "_min_chars")),
    *("eval_dataset", "eval_limit", "keep_best"),
}
_OFF_AT_0 = {"eval_every", "early_stop"}


TrainerOptions = Annotated[
    dict[str, Any],
    Flag(type=str, default=""),
    Field(
        description="JSON object of arguments of TRL's trainer; best as `trainer:` in a --config file, or one by one "
        "as --set trainer.NAME=VALUE."
    ),
]


def without_unset(record: Values) -> Values:
    """Without options that checkpoints of earlier versions do not name and that are not set: those go on to count."""
    unset = {name for name in _LATER & record.keys() if record[name] in (None, "", {}) or record[name] is False}
    unset |= {name for name in _OFF_AT_0 & record.keys() if record[name] == 0}
    return {name: value for name, value in record.items() if name not in unset}


def takes_settings(main: Callable[..., None]) -> Callable[..., None]:
    """``main`` as typer takes it: a parameter ``Annotated[Values, Model]`` becomes an option for each of its fields."""
    hints = get_type_hints(main, include_extras=True)
    parameters: list[Parameter] = []
    fields_of: dict[str, dict[str, str]] = {}
    for parameter in signature(main).parameters.values():
        model = _model_of(hints[parameter.name])
        if model is None:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY))
        else:
            options = {name: _option(model, name) for name in model.model_fields}
            visible = {name: option for name, option in options.items() if option is not None}
            fields_of[parameter.name] = {option.name: name for name, option in visible.items()}
            parameters += visible.values()

    def command(**arguments: Any) -> None:
        for name, fields in fields_of.items():
            values = {field: arguments.pop(option) for option, field in fields.items()}
            arguments[name] = {field: value for field, value in values.items() if value is not None}
        main(**arguments)

    command.__name__, command.__doc__ = main.__name__, main.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _model_of(hint: Any) -> type[ProgramSettings] | None:
    models = (extra for extra in get_args(hint)[1:] if isinstance(extra, type) and issubclass(extra, ProgramSettings))
    return next(models, None)


def _option(model: type[ProgramSettings], name: str) -> Parameter | None:
    """The typer option of a field, with its bounds; None for a field that the command line does not set."""
    field = model.model_fields[name]
    flag: Flag = next((extra for extra in field.metadata if isinstance(extra, Flag)), Flag())
    if flag.hidden:
        return None
    is_open = name in model.filled_later
    kind = flag.type or (field.annotation if not is_open else field.annotation | None)  # type: ignore[operator]
    default = flag.default if flag.default is not ... else None if is_open else field.default
    declaration = flag.declaration or (f"--{name.replace('_', '-')}" if field.annotation is bool else "")
    bounds: dict[str, Any] = bounds_of(field)
    option = typer.Option(*([declaration] if declaration else []), help=field.description, **bounds)
    return Parameter(flag.name or name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def bounds_of(field: FieldInfo) -> dict[str, float]:
    """``min`` and ``max`` of a number, as typer calls them."""
    names = {"ge": "min", "le": "max"}
    return {names[name]: getattr(bound, name) for bound in field.metadata for name in names if hasattr(bound, name)}


def config_option(example: str) -> Any:
    """The option ``--config``, a YAML file that sets other options."""
    return typer.Option(
        help=f"YAML file that sets any of these options, as in `{example}`; the command line takes precedence.",
        callback=recipe_values,
        is_eager=True,
    )


def recipe_values(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of ``--config``: the file's values become the defaults of the options.

    An object, or a list of them, is passed on as JSON; what may be repeated is a list, one value, or a mapping of names
    to values.
    """
    if path is None:
        return None
    if not path.is_file():
        raise typer.BadParameter(f"no file {path}")
    try:
        entries = yaml.safe_load(path.read_text()) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(entries, dict):
        raise typer.BadParameter(f"{path}: expected `option: value` lines, found {type(entries).__name__}")
    repeatable = {parameter.name for parameter in context.command.params if getattr(parameter, "multiple", False)}
    option_names = {parameter.name for parameter in context.command.params} - {"config"}
    values = {str(name).replace("-", "_"): value for name, value in entries.items()}
    for name, value in values.items():
        if name in repeatable and isinstance(value, dict):
            values[name] = [f"{key}={entry}" for key, entry in value.items()]
        elif isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
            values[name] = json.dumps(value)
        elif name in repeatable and not isinstance(value, list):
            values[name] = [value]
    if unknown := sorted(values.keys() - option_names):
        raise typer.BadParameter(f"{path} has unknown keys {unknown}; known: {sorted(filter(None, option_names))}")
    context.default_map = {**(context.default_map or {}), **values}
    return path


@contextmanager
def guarded() -> Iterator[None]:
    """Sets ``ENVIRONMENT``; the job directory receives the reason of an error.

    SIGTERM ends it in order: sandboxes are closed, and the reason is in the job directory, too.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # TRL 1.16 and PEFT 0.21 read the name that transformers 5.23 deprecates: no user can change that
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
    exchange = JobDirectory.of_this_program()
    with _ending_in_order(exchange):
        try:
            yield
        except UserError as error:
            _leave(exchange, str(error))
            raise
        except Exception as error:
            _leave(exchange, f"{type(error).__name__}: {error}")
            raise


@contextmanager
def _ending_in_order(exchange: JobDirectory | None) -> Iterator[None]:
    """End this process in order on SIGTERM, and with ``accelerate launch``."""

    def end(number: int, _: object) -> None:
        _leave(exchange, f"it was told to end ({signal.Signals(number).name})")
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    if "LOCAL_RANK" in os.environ:
        die_with_parent(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_first_process() -> bool:
    """Whether this is the process that writes and reports; ``accelerate launch`` and torchrun set ``RANK``."""
    return int(os.environ.get("RANK", "0")) == 0


def _leave(exchange: JobDirectory | None, words: str) -> None:
    """The error message, for the starter of the job."""
    if exchange is not None:
        exchange.error.write_text(f"{words}\n")
