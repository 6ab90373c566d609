"""A command that serves, started as a user would, until the context ends."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(
    *arguments: str, env: Mapping[str, str] | None = None, port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of ``darkroom …`` and the address that it prints first."""
    command = [str(Path(sys.executable).with_name("darkroom")), *arguments, "--port", str(port)]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            address = re.search(r"http://[\d.]+:\d+(?:/v1)?", line)
            assert address is not None, line + process.stderr.read()
            yield process, address[0]
        finally:
            process.kill()
