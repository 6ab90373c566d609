"""The command line of the training programs: options from settings models, recipe files, readable errors, no network.

    @takes_settings
    def main(output: Path, settings: Annotated[Values, SftSettings]) -> None: ...     # --epochs, --batch-size, …

Programs import heavy libraries inside functions: `--help` answers at once, and ``ENVIRONMENT`` is set before them.
"""

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer
import yaml
from pydantic import BaseModel, ConfigDict

from darkroom.pipelines.processes.process_sessions import signals_handled
from darkroom.pipelines.processes.supervisor import JobDirectory, die_with_parent
from darkroom.sandbox.errors import UserError

ENVIRONMENT: dict[str, str] = yaml.safe_load(Path(__file__).with_name("environment.yaml").read_text(encoding="utf-8"))

Values = dict[str, Any]
"""Values of a settings model by field, as the command line and its files set them; unset optional fields are absent."""


@dataclass(frozen=True, slots=True)
class Flag:
    """The option of a field, in its ``Annotated``, where it differs from the field's name and type."""

    name: str = ""
    """Name of the option and its key in YAML files."""
    repeated: bool = False
    """The option may be repeated: a list of texts."""
    json: bool = False
    """The option is a JSON text."""
    declaration: str = ""
    """The option's spellings, as in ``--ats/--no-ats``."""
    hidden: bool = False
    """There is no option: the program sets the field itself."""


class ProgramSettings(BaseModel):
    """Base of the settings of a training program. A field's description is its help text on every surface."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    filled_later: ClassVar[frozenset[str]] = frozenset()
    """Fields whose default is decided elsewhere: their options have none."""


def takes_settings(main: Callable[..., None]) -> Callable[..., None]:
    """Turn a parameter ``Annotated[Values, Model]`` of ``main`` into an option for each of its fields, for typer."""
    hints = get_type_hints(main, include_extras=True)
    parameters: list[Parameter] = []
    fields_of: dict[str, dict[str, str]] = {}
    for parameter in signature(main).parameters.values():
        extras = get_args(hints[parameter.name])[1:]
        models = [extra for extra in extras if isinstance(extra, type) and issubclass(extra, ProgramSettings)]
        if not models:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY))
        for model in models:
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


def _option(model: type[ProgramSettings], name: str) -> Parameter | None:
    """Make the typer option of a field, with its bounds; None for a field that the command line does not set."""
    field = model.model_fields[name]
    flag: Flag = next((extra for extra in field.metadata if isinstance(extra, Flag)), Flag())
    if flag.hidden:
        return None
    kind, default = field.annotation, field.default
    if flag.repeated or flag.json:
        kind, default = (list[str] | None, None) if flag.repeated else (str, "")  # type: ignore[assignment]
    elif name in model.filled_later:
        kind, default = kind | None, None  # type: ignore[operator, assignment]
    declaration = flag.declaration or (f"--{name.replace('_', '-')}" if field.annotation is bool else "")
    pairs = ((bound, *names) for bound in field.metadata for names in (("ge", "min"), ("le", "max")))
    bounds: dict[str, Any] = {limit: getattr(bound, key) for bound, key, limit in pairs if hasattr(bound, key)}
    option = typer.Option(*filter(None, [declaration]), help=" ".join((field.description or "").split()), **bounds)
    return Parameter(flag.name or name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def config_option(example: str) -> Any:
    return typer.Option(
        help=f"YAML file that sets any of these options, as in `{example}`; the command line takes precedence.",
        callback=recipe_values,
        is_eager=True,
    )


def recipe_values(context: typer.Context, path: Path | None) -> Path | None:
    """Make the file's values the defaults of the options (the callback of ``--config``). An object, or a list of them,
    is passed on as JSON; an option that may be repeated is a list, one value, or a mapping of names to values."""
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
    """Set ``ENVIRONMENT`` and report the reason of an error to the job directory. SIGTERM ends the program in order:
    sandboxes are closed, and the reason is in the job directory, too."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # TRL 1.16 and PEFT 0.21 read the name that transformers 5.23 deprecates: no user can change that
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
    exchange = JobDirectory.of_this_program()

    def leave(words: str) -> None:
        if exchange is not None:
            exchange.error.write_text(f"{words}\n")

    def end(number: int, _: object) -> None:
        leave(f"it was told to end ({signal.Signals(number).name})")
        sys.exit(128 + number)

    if "LOCAL_RANK" in os.environ:  # of `accelerate launch`
        die_with_parent(signal.SIGTERM)
    with signals_handled(end, signal.SIGTERM):
        try:
            yield
        except Exception as error:
            leave(str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}")
            raise


def is_first_process() -> bool:
    """True in the process that writes and reports; ``accelerate launch`` and torchrun set ``RANK``."""
    return int(os.environ.get("RANK", "0")) == 0


def n_processes() -> int:
    """Count the processes of this program, over all machines."""
    return int(os.environ.get("WORLD_SIZE", "1"))
