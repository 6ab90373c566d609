"""What the programs share on the command line: recipe files, readable failures, no network.

Programs import the heavy libraries inside functions: `--help` answers at once, and the environment that these
libraries read when they are imported is in place before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
import yaml

from train.exchange import Exchange, attend
from train.faults import TrainFault
from train.lifeline import die_with_parent

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",  # models and datasets are folders: nothing is ever downloaded
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",  # GRPO with an environment is experimental in TRL 1.16; the pin holds it still
}


def recipe_values(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of ``--config``: a YAML file gives values to flags that the command line leaves out.

    A list of objects arrives as JSON.
    """
    if path is None:
        return None
    if not path.is_file():
        raise typer.BadParameter(f"no file {path}")
    given = yaml.safe_load(path.read_text()) or {}
    known = {parameter.name for parameter in context.command.params} - {"config"}
    values = {str(name).replace("-", "_"): _as_flag(value) for name, value in given.items()}
    if unknown := sorted(values.keys() - known):
        raise typer.BadParameter(f"{path} has unknown keys {unknown}; known: {sorted(filter(None, known))}")
    context.default_map = {**(context.default_map or {}), **values}
    return path


def _as_flag(value: Any) -> Any:
    is_objects = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return json.dumps(value) if is_objects else value


@contextmanager
def guarded() -> Iterator[None]:
    """Sets ``ENVIRONMENT``; a ``TrainFault`` ends the program with its message and exit status 1, no traceback.

    SIGTERM ends it in order: sandboxes are closed, and whoever started it through an exchange folder reads why.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # TRL 1.16 and PEFT 0.21 read the name that transformers 5.23 deprecates: nothing that a user could do about
    warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
    exchange = Exchange.of_this_program()
    with _ending_in_order(exchange):
        try:
            yield
        except TrainFault as fault:
            _leave(exchange, str(fault))
            typer.secho(f"error: {fault}", fg="red", err=True)
            raise typer.Exit(1) from fault
        except Exception as fault:
            _leave(exchange, f"{type(fault).__name__}: {fault}")
            raise


@contextmanager
def _ending_in_order(exchange: Exchange | None) -> Iterator[None]:
    """SIGTERM is an exit; a process of ``accelerate launch`` ends with its launcher; a wish to stop is heard."""

    def end(number: int, _: object) -> None:
        _leave(exchange, f"it was told to end ({signal.Signals(number).name})")
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    if "LOCAL_RANK" in os.environ:
        die_with_parent(signal.SIGTERM)
    try:
        if exchange is not None:
            attend(exchange, first=is_first_process())
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_first_process() -> bool:
    """Whether this is the process that writes and reports; ``accelerate launch`` and torchrun set ``RANK``."""
    return int(os.environ.get("RANK", "0")) == 0


def _leave(exchange: Exchange | None, words: str) -> None:
    """Last words, for whoever started the program."""
    if exchange is not None:
        exchange.fault.write_text(f"{words}\n")
