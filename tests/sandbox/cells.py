"""Code that runs as a session runs it, with the repairs of boxes."""

import ast
import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck
from PIL import Image

from darkroom.sandbox._guest.boxes import _SLICED, Repairs

SIZE = WIDTH, HEIGHT = 200, 100
ONE_CELL = [HealthCheck.function_scoped_fixture]
PLAIN = {name: getattr(Image.Image, name) for name in ("crop", "resize")}


def take_back() -> None:
    """Undo `Repairs.install`: Pillow is everybody's."""
    for name, method in PLAIN.items():
        setattr(Image.Image, name, method)
    vars(builtins).pop(_SLICED, None)


class Cell:
    """Runs code as the session does: named as a cell, its slices prepared."""

    def __init__(self, repairs: Repairs) -> None:
        self.repairs = repairs
        rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
        self.array = np.stack([rows, columns, rows + columns], axis=-1).astype(np.uint8)
        self.names: dict[str, Any] = {"np": np, "array": self.array, "image": Image.fromarray(self.array)}

    def run(self, code: str, **names: Any) -> Any:
        """The value of `result`."""
        self.repairs.begin()
        self.names |= names
        tree = self.repairs.instrument(ast.parse(code, "<cell 0>"))
        exec(compile(tree, "<cell 0>", "exec"), self.names)
        return self.names.pop("result", None)

    @property
    def edits(self) -> list[tuple[str, str]]:
        assert {edit.kind for edit in self.repairs.edits} <= {"clamp_box"}
        return [(edit.before, edit.after) for edit in self.repairs.edits]


def outcome_of(act: Callable[[], Any]) -> tuple[Any, str]:
    """The value, or the text of the ValueError."""
    try:
        return act(), ""
    except ValueError as error:
        return None, str(error)
