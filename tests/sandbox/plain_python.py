"""Runs the cells of cases/trajectories.json without a sandbox, to show that the cells themselves are right.

python -m tests.sandbox.plain_python photo.jpg        prints {name of the case: error or null}
"""

import base64
import io
import json
import math
import os
import random
import re
import sys
import tempfile
import types
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import cv2
import matplotlib as mpl
import numpy as np
from PIL import Image

from sandbox._guest.config import WORK_FOLDER
from tests.sandbox.inputs import TRAJECTORIES, make_inputs

mpl.use("Agg")
import matplotlib.pyplot as plt


def main(photo: Path) -> None:
    plt.show = lambda *_args, **_options: plt.close("all")  # nobody looks, as in the sandbox
    setattr(Image.Image, "show", lambda *_args, **_options: None)  # noqa: B010
    warnings.simplefilter("ignore")
    errors = {case["name"]: run(case, photo) for case in TRAJECTORIES if not case.get("inside_only")}
    print(json.dumps(errors))


def run(case: dict, photo: Path) -> str | None:
    """The first error of the case's rounds, or what its last round printed instead of what is expected."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        vars(module).update(_names(case, photo, Path(folder)))
        sys.stdin, text = io.StringIO(""), ""
        for code in case["rounds"]:
            output = io.StringIO()
            try:
                with redirect_stdout(output), redirect_stderr(output):
                    exec(compile(code.replace(WORK_FOLDER, folder), "<cell>", "exec"), vars(module))
            except BaseException as error:
                return f"{type(error).__name__}: {error}"
            text = output.getvalue()
    expected = case.get("expect", {}).get("text", text)
    return None if text == expected else f"it printed {text!r}"


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
