"""A row's code in ordinary Python, outside the sandbox: a second opinion on the sandbox itself.

``plain_rows_runner.py`` shares no code with it. What the sandbox alone does (repairs, limits, blocked calls) has no
counterpart here; such rows are ``NotComparable`` and counted.
"""

import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from PIL import Image

from darkroom import sandbox
from darkroom.pipelines.models.tasks import image_names
from darkroom.pipelines.publishing.replay import NotComparable, SetupFailed, setup_of
from darkroom.sandbox.neutral import neutralise

WORK_FOLDER, IMAGE_FOLDER = "/mnt/data/temp_processed_images", "/mnt/data/input_images"
"""Folders that code names; each is a folder of its own here."""
_RUNNER = Path(__file__).with_name("plain_rows_runner.py")
_MOVED = frozenset({"output_folder", "image_name"})
"""Edits that only say where a file is."""
_START_SECONDS = 120.0


class PlainPython:
    """One process with the libraries imported, forked per row; several threads may share it, one row at a time.

    >>> with PlainPython() as python:
    ...     observations = list(python.execute(row))
    """

    def __init__(self) -> None:
        self._limits = sandbox.Limits()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def execute(self, row: Mapping[str, Any]) -> Iterator[sandbox.Observation]:
        """The observations of all of the row's code. Raises ``NotComparable``, ``SetupFailed``."""
        if not row["rounds"]:
            return
        for number, turn in enumerate(row["rounds"], start=1):
            _check_comparable(number, turn["observation"], self._limits)
        setup = setup_of(row["protocol"])
        with tempfile.TemporaryDirectory(prefix="darkroom-audit-") as name:
            folder = Path(name)
            programs = [*([setup] if setup else []), *(turn["code"] for turn in row["rounds"])]
            shown = self._write_job(folder, row, programs)
            self._run(folder, len(programs))
            results = _results(folder, len(programs))
            if setup and results[0]["status"] != "ok":
                raise SetupFailed(f"{row['protocol']}: {results[0]['error']}")
            for result in results[1 if setup else 0 :]:
                yield _observation(folder, result, shown)

    def _write_job(self, folder: Path, row: Mapping[str, Any], programs: list[str]) -> dict[str, str]:
        """The job's files. Returns the real places by what code and observations call them."""
        work, inputs = folder / "work", folder / "inputs"
        work.mkdir()
        inputs.mkdir()
        images = [_store(inputs, f"image_{n}", row["images"][n]["bytes"]) for n in range(row["n_question_images"])]
        videos = [_store(inputs, f"video_{n}", video["bytes"]) for n, video in enumerate(row.get("videos") or ())]
        places = {WORK_FOLDER: str(work), IMAGE_FOLDER: str(inputs)}
        for called, path in zip(image_names(row["question"]), images, strict=False):
            if called.startswith("/"):
                places[called] = path
            elif ".." not in Path(called).parts:
                (work / called).parent.mkdir(parents=True, exist_ok=True)
                (work / called).symlink_to(path)
        job = {
            "images": images,
            "videos": videos,
            "programs": [_moved(code, places) for code in programs],
            "seed": row["provenance"]["seed"],
            "work_folder": str(work),
            "max_images": self._limits.max_images,
            "file_bytes": max(self._limits.file_mb, self._limits.reply_mb) << 20,
            "cpu_seconds": int(self._limits.seconds * len(programs) + 10),
        }
        (folder / "job.json").write_text(json.dumps(job))
        return places

    def _run(self, folder: Path, n_programs: int) -> None:
        """Raises ``NotComparable`` when the row takes longer than the sandbox would give it by the wall clock."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(f"{folder}\n".encode())
                process.stdin.flush()
            except BrokenPipeError as error:
                self._stop()
                raise NotComparable("plain Python ended before the row began") from error
            seconds = _START_SECONDS + self._limits.most_wall_seconds * n_programs
            ready, _, _ = select.select([process.stdout], [], [], seconds)
            if not ready or not process.stdout.readline():
                self._stop()
                raise NotComparable(f"still running after {seconds:g} s" if not ready else "plain Python ended")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
            command = [sys.executable, "-I", str(_RUNNER)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | variables,
                start_new_session=True,
            )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            process.wait()


def _check_comparable(number: int, recorded: Mapping[str, Any], limits: sandbox.Limits) -> None:
    if recorded["status"] not in ("ok", "error", None):
        raise NotComparable(f"round {number} has the status {recorded['status']}, which only a sandbox gives")
    if kinds := sorted({edit["kind"] for edit in recorded.get("edits") or ()} - _MOVED):
        raise NotComparable(f"the sandbox repaired the code of round {number}: {', '.join(kinds)}")
    if len(recorded["text"] or "") >= limits.output_chars:
        raise NotComparable(f"the output of round {number} was cut")


def _store(folder: Path, name: str, data: bytes) -> str:
    """A file with the name that the code would find in the sandbox, too."""
    suffix = "mp4"
    if name.startswith("image"):
        try:
            with Image.open(io.BytesIO(data)) as image:
                suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(image.format or "", (image.format or "img").lower())
        except OSError as error:
            raise SetupFailed(f"{name} cannot be decoded: {error}") from error
    path = folder / f"{name}.{suffix}"
    path.write_bytes(data)
    return str(path)


def _moved(code: str, places: Mapping[str, str]) -> str:
    for called, real in places.items():
        code = code.replace(called, real)
    return code


def _results(folder: Path, n_programs: int) -> list[dict[str, Any]]:
    path = folder / "results.json"
    results: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    if len(results) < n_programs:
        raise NotComparable(f"plain Python ended in program {len(results) + 1} of {n_programs}")
    return results


def _observation(folder: Path, result: Mapping[str, Any], places: Mapping[str, str]) -> sandbox.Observation:
    def shown(text: str) -> str:
        for called, real in places.items():
            text = text.replace(real, called)
        return neutralise(text)

    images = [sandbox.ShownImage(Image.fromarray(np.load(folder / file)), file) for file in result["images"]]
    error = None if result["error"] is None else shown(result["error"])
    return sandbox.Observation(result["status"], shown(result["text"]), tuple(images), error, 0.0, (), ())
