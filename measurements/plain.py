"""The baseline: the same programs in Python without a sandbox, same interpreter and libraries."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from measurements.task import Library, code_of, require_right

# like the sandbox's zygote; anything else would compare thread counts
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_LOOP = """
import contextlib, io, sys
import numpy, cv2, random, PIL.Image
cv2.setNumThreads(1)
names = {"image_path": sys.argv[1], "__name__": "__main__"}
code = compile(sys.argv[2], "<cell>", "exec")
for line in sys.stdin:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    sys.stdout.write(printed.getvalue())
    sys.stdout.flush()
"""
_IMPORTS = "import numpy, cv2, PIL.Image, matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot\n"


class PlainProcess:
    """A long-lived process that runs one program again and again; the program is compiled once."""

    def __init__(self, code: str, photo: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=memory_folder())
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOOP, str(photo), code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=self._folder.name,
            env={**os.environ, **_ONE_THREAD},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin and self._process.stdout:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._folder.cleanup()

    def run(self) -> Path:
        """One call; the file that it saved."""
        if not self._process.stdin or not self._process.stdout:
            raise SystemExit("the plain process has no pipes")
        self._process.stdin.write(b"\n")
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the plain process ended")
        return Path(self._folder.name, line.decode().strip())


def run_fresh(library: Library, photo: Path, expected: bytes) -> None:
    """One call in an interpreter of its own, with the imports that a session has warm."""
    code = f"{_IMPORTS}cv2.setNumThreads(1)\nimage_path = {str(photo)!r}\n{code_of(library)}"
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        command = [sys.executable, "-c", code]
        environment = {**os.environ, **_ONE_THREAD}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        require_right([Path(folder, done.stdout.strip())], expected)


def memory_folder() -> str | None:
    """The sandbox's sessions write into memory; so does the baseline."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
