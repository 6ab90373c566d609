"""Runs the cells of cases/trajectories.json without a sandbox, to show that the cells themselves are right.

python -m tests.sandbox.plain_python photo.jpg        prints {name of the case: error or null}

`PlainPython` runs other rounds in such a process, each case in a child of it.
"""

import base64
import io
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import matplotlib as mpl
import numpy as np
from PIL import Image

from darkroom.sandbox._guest.errors import describe, remember_lines
from darkroom.sandbox._guest.messages import WORK_FOLDER
from tests.sandbox.inputs import TRAJECTORIES, make_inputs

mpl.use("Agg")
import matplotlib.pyplot as plt


def main(photo: Path) -> None:
    _prepare()
    errors = {case["name"]: run(case, photo) for case in TRAJECTORIES if not case.get("inside_only")}
    print(json.dumps(errors))


def _prepare() -> None:
    plt.show = lambda *_args, **_options: plt.close("all")  # nobody looks, as in the sandbox
    setattr(Image.Image, "show", lambda *_args, **_options: None)  # noqa: B010
    warnings.simplefilter("ignore")


def run(case: dict, photo: Path) -> str | None:
    """The first error of the case's rounds, or what its last round printed instead of what is expected."""
    text = ""
    for outcome in run_rounds(case, photo):
        if outcome.error is not None:
            return outcome.error
        text = outcome.text
    expected = case.get("expect", {}).get("text", text)
    return None if text == expected else f"it printed {text!r}"


class PlainRound(NamedTuple):
    """What one round came to."""

    text: str
    error: str | None
    images: set[tuple[tuple[int, int], bytes]]
    """Size and pixels of the PNG files that it made."""


def run_rounds(case: dict, photo: Path) -> Iterator[PlainRound]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        vars(module).update(_names(case, photo, folder))
        sys.stdin, seen = io.StringIO(""), set(folder.glob("*.png"))
        for code in case["rounds"]:
            output, error = io.StringIO(), None
            code = code.replace(WORK_FOLDER, name)
            remember_lines("<cell>", code)
            try:
                with redirect_stdout(output), redirect_stderr(output):
                    exec(compile(code, "<cell>", "exec"), vars(module))
            except BaseException as raised:
                error = None if isinstance(raised, SystemExit) and not raised.code else describe(raised, "<cell>")
            made, seen = set(folder.glob("*.png")) - seen, set(folder.glob("*.png"))
            yield PlainRound(output.getvalue(), error, {pixels_of(Image.open(path)) for path in made})


def pixels_of(image: Image.Image) -> tuple[tuple[int, int], bytes]:
    return image.size, image.convert("RGB").tobytes()


class PlainPython:
    """A process that has imported everything and forks for each case."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", f"from {__spec__.name} import serve; serve()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, rounds: list[str], photo: Path) -> list[PlainRound]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(({"rounds": rounds}, photo), self._process.stdin)
        self._process.stdin.flush()
        outcomes: list[PlainRound] = pickle.load(self._process.stdout)
        return outcomes

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    with suppress(EOFError):
        while True:
            case, photo = pickle.load(sys.stdin.buffer)
            pid = os.fork()
            if pid == 0:
                _prepare()
                pickle.dump(list(run_rounds(case, photo)), sys.stdout.buffer)
                sys.stdout.flush()
                os._exit(0)
            if os.waitpid(pid, 0)[1]:
                sys.exit("a child died without an answer")


def _names(case: dict, photo: Path, folder: Path) -> dict[str, Any]:
    paths = [photo]
    if "inputs" in case:
        paths = [folder / f"image_{index}.png" for index in range(len(case["inputs"]))]
        for path, image in zip(paths, make_inputs(case), strict=True):
            image.save(path)
    for name, path in zip(case.get("names", ()), paths, strict=False):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(path)
    names: dict[str, Any] = {"np": np, "numpy": np, "cv2": cv2, "plt": plt, "Image": Image, "os": os, "math": math}
    names |= {"random": random, "re": re, "json": json, "io": io, "base64": base64, "matplotlib": mpl, "display": print}
    for index, path in enumerate(paths):
        names |= {f"image_path_{index}": str(path), f"image_clue_{index}": Image.open(path)}
        names[f"image_size_{index}"] = names[f"image_clue_{index}"].size
    return {**names, "image_path": names["image_path_0"], "image_size": names["image_size_0"]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
