"""An S3 server on loopback (moto's, in a process of its own), and the variables that lead clients to it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from uuid import uuid4

import fsspec

from scripts.ports import free_port

ROOT = Path(__file__).resolve().parents[1]


class S3Server:
    """``url(...)`` makes a bucket of its own for each test. With a ``log`` a server that is started again has all that
    the killed one had; without it has nothing."""

    def __init__(self, log: Path | None = None) -> None:
        self.port = free_port()
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        command = ["moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        if self._log is not None:
            command = ["tests.lasting_s3", str(self.port), str(self._log)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self._answers():
            assert self._process.poll() is None, "the S3 server ended"
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def url(self, name: str = "home") -> str:
        """A prefix in a new bucket. The variables of ``environment`` are set."""
        bucket = f"b{uuid4().hex[:12]}"
        fsspec.filesystem("s3", use_listings_cache=False).mkdir(bucket)
        return f"s3://{bucket}/{name}"

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/moto-api/")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def s3_server(log: Path | None = None) -> Iterator[S3Server]:
    server = S3Server(log)
    server.start()
    try:
        yield server
    finally:
        server.kill()
