"""A program of ``train/`` with its arguments, as data: the one place where its command line is built."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

Value = str | int | float | bool | Path | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Program:
    """What runs, and the folder that it writes."""

    module: str
    output: Path
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, module: str, output: Path, flags: Mapping[str, Value]) -> Self:
        """``flags`` by name as in Python: ``{"max_steps": 3, "lora": 0, "resume": True}``.

        None, False and "" leave a flag out; True gives its name alone; a list gives it once for each value.
        """
        words = [word for name, value in {**flags, "output": output}.items() for word in _words(name, value)]
        return cls(module, output, tuple(words))

    def command(self, python: str, *, n_processes: int = 1) -> list[str]:
        """The command line, by ``python -m`` or, for several processes, by ``accelerate launch``."""
        if n_processes == 1:
            return [python, "-m", self.module, *self.arguments]
        accelerate = (
            *("-m", "accelerate.commands.launch"),
            *("--num_processes", str(n_processes)),
            *("--num_machines", "1"),
            *("--mixed_precision", "no"),  # the program itself chooses bfloat16 on a GPU
            *("--dynamo_backend", "no"),
            *("--main_process_port", "0"),  # any that is free
            "--module",
        )
        return [python, *accelerate, self.module, *self.arguments]

    @property
    def name(self) -> str:
        """Short, for schedulers: ``darkroom-sft``."""
        return f"darkroom-{self.module.rpartition('.')[2]}"


def shell_line(command: Sequence[str]) -> str:
    """The command as a person would type it."""
    return shlex.join(command)


def _words(name: str, value: Value) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False or value == "":
        return []
    if value is True:
        return [flag]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [word for one in value for word in (flag, one)]
    return [flag, str(value)]
