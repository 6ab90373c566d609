"""Runs the code of rows in ordinary Python, one forked child per row: no sandbox, no repairs, no shared decoding.

Started by ``plain_rows.py`` as ``python -I plain_rows_runner.py``; imports nothing of Darkroom, so that an error
of the sandbox cannot hide here. It protects from nothing: the code runs with the user's own rights.

A line of standard input names a folder with ``job.json``; the child writes ``results.json`` and the images it showed
(``<round>-<n>.npy``) there, and the parent answers with a line.
"""

import io
import json
import linecache
import math
import os
import random
import re
import resource
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import av
import cv2
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{8,16}\b")


class VideoFrames:
    """Of one video: what ``video_clue_0`` offers of decord's reader."""

    def __init__(self, path: str) -> None:
        with av.open(path) as container:
            stream = container.streams.video[0]
            self._fps = float(stream.average_rate or 0)
            self._frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> "FrameArray":
        if isinstance(index, slice):
            return self.get_batch(range(*index.indices(len(self))))
        return FrameArray(self._frames[index])

    def get_batch(self, indices: Any) -> "FrameArray":
        return FrameArray(np.stack([self._frames[int(index)] for index in indices]))

    def get_avg_fps(self) -> float:
        return self._fps


class FrameArray:
    """An array with decord's ``asnumpy``."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def asnumpy(self) -> Any:
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._array if dtype is None else self._array.astype(dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


class Shown:
    """What a round displays and which image files it writes, in order."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        write = cv2.imwrite
        sys.addaudithook(self._audit)

        def imwrite(path: Any, *rest: Any, **options: Any) -> Any:
            written = write(path, *rest, **options)
            self._wrote(path)
            return written

        replaced: Any = [(cv2, "imwrite", imwrite), (plt, "show", lambda *_, **__: self._figures())]
        replaced += [(Image.Image, "show", lambda image, title=None: self.display(image))]
        replaced += [(Figure, "show", lambda figure, warn=True: self.display(figure))]
        for owner, name, function in replaced:
            setattr(owner, name, function)

    def display(self, *things: Any, **_: Any) -> None:
        for thing in things:
            if isinstance(thing, Image.Image):
                self.items.append(np.asarray(on_white(thing)))
            elif isinstance(thing, Figure):
                canvas: Any = thing.canvas
                canvas.draw()
                self.items.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
            else:
                print(repr(thing))

    def images(self, held: Sequence[str]) -> list[Any]:
        """Of this round, each once: a file where it was written last, then files that variables newly name."""
        places = {item: place for place, item in enumerate(self.items) if isinstance(item, str)}
        kept = [item for place, item in enumerate(self.items) if not isinstance(item, str) or places[item] == place]
        pixels: list[Any] = []
        for item in [*kept, *(path for path in held if path not in places)]:
            array = read(item) if isinstance(item, str) else item
            if array is not None and not any(np.array_equal(array, other) for other in pixels):
                pixels.append(array)
        return pixels

    def _figures(self) -> None:
        for number in plt.get_fignums():
            self.display(plt.figure(number))
        plt.close("all")

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            self._wrote(arguments[0])
        elif event == "os.rename":
            self._wrote(arguments[1])

    def _wrote(self, path: Any) -> None:
        if isinstance(path, str | Path) and str(path).lower().endswith(SUFFIXES):
            self.items.append(os.path.realpath(path))


def on_white(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def read(path: str) -> Any:
    try:
        with Image.open(path) as image:
            return np.asarray(on_white(image))
    except (OSError, ValueError):
        return None


def held(names: dict[str, Any]) -> dict[str, list[str]]:
    """Image files that variables called ``...processed_path...`` name."""
    paths = {}
    for name, value in list(names.items()):
        if "processed_path" in name.lower():
            several = value if isinstance(value, list | tuple) else (value,)
            paths[name] = [str(path) for path in several if isinstance(path, str | Path)]
    return paths


def seed_everything(seed: int) -> None:
    """As a row's seed is documented to work: random, numpy, OpenCV, os.urandom (and so uuid4)."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    cv2.setRNGSeed(seed & 0x7FFFFFFF)
    make, streams = np.random.default_rng, np.random.SeedSequence(seed & 0xFFFFFFFF)
    replaced: Any = [
        (np.random, "default_rng", lambda given=None: make(streams.spawn(1)[0] if given is None else given))
    ]
    randbytes = random.Random(f"bytes {seed}").randbytes
    for owner, name, function in [*replaced, (os, "urandom", randbytes), (random, "_urandom", randbytes)]:
        setattr(owner, name, function)


def namespace(job: dict[str, Any], shown: Shown) -> dict[str, Any]:
    main = sys.modules["__main__"] = ModuleType("__main__")
    names = vars(main)
    names |= {"np": np, "numpy": np, "cv2": cv2, "plt": plt, "Image": Image, "os": os, "math": math, "random": random}
    names |= {"re": re, "json": json, "io": io, "matplotlib": matplotlib, "display": shown.display}
    for kind, paths in (("image", job["images"]), ("video", job["videos"])):
        for index, path in enumerate(paths):
            names[f"{kind}_path_{index}"] = path
            names[f"{kind}_clue_{index}"] = Image.open(path) if kind == "image" else VideoFrames(path)
            if kind == "image":
                names[f"image_size_{index}"] = names["image_clue_0" if index == 0 else f"image_clue_{index}"].size
    for name in ("image_path", "video_path", "image_size"):
        if f"{name}_0" in names:
            names[name] = names[f"{name}_0"]
    return names


def run(code: str, cell: str, names: dict[str, Any]) -> tuple[str, str | None]:
    """Status and error, as an observation words them."""
    linecache.cache[cell] = (len(code), None, code.splitlines(keepends=True), cell)
    try:
        exec(compile(code, cell, "exec"), names)
    except SystemExit as error:
        return ("ok", None) if error.code in (None, 0) else ("error", f"SystemExit: {error}")
    except BaseException as error:  # whatever the code raises is its result
        if isinstance(error, SyntaxError):
            message, line = str(error.msg), error.lineno if error.filename == cell else None
        else:
            frames = [n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == cell]
            message, line = str(error).strip()[:2000], frames[-1] if frames else None
        text = linecache.getline(cell, line).strip()[:160] if line else ""
        where = "" if line is None else f" (line {line}: {text})" if text else f" (line {line})"
        return "error", f"{type(error).__name__}: {message}{where}"
    return "ok", None


def perform(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    resource.setrlimit(resource.RLIMIT_CPU, (job["cpu_seconds"],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_bytes"],) * 2)
    os.chdir(job["work_folder"])
    os.environ |= {"HOME": job["work_folder"], "TMPDIR": job["work_folder"]}
    seed_everything(job["seed"])
    shown, addresses, results = Shown(), dict[str, int](), list[dict[str, Any]]()
    names = namespace(job, shown)
    sys.stdin = io.StringIO("")
    for number, code in enumerate(job["programs"]):
        shown.items, before, output = [], held(names), io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            status, error = run(code, f"<cell {number}>", names)
        new = [path for name, paths in held(names).items() if before.get(name) != paths for path in paths]
        images = shown.images([os.path.realpath(path) for path in new if path.lower().endswith(SUFFIXES)])
        files = []
        for n, pixels in enumerate(images[: job["max_images"]]):
            files.append(f"{number}-{n}.npy")
            np.save(folder / files[-1], pixels)
        text = ADDRESS.sub(lambda match: settled(match[0], addresses), output.getvalue())
        results.append({"status": status, "text": text, "error": error, "images": files})
        (folder / "results.json").write_text(json.dumps(results))


def settled(address: str, known: dict[str, int]) -> str:
    return hex(0x7F0000000000 + 0x10 * known.setdefault(address, len(known) + 1))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what C code prints is no answer
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                perform(Path(line.rstrip("\n")))
            except BaseException:  # the parent says that results are missing
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        answers.write(f"{os.waitpid(child, 0)[1]}\n")


if __name__ == "__main__":
    main()
