"""Servers of object stores on loopback, each a process of its own, and the variables that lead clients to them.

moto's S3 server is in every developer's environment. Those of Google and Azure are emulators that are installed apart
(`tests/adapters/test_object_stores.py`), which then runs the tests of the ``object_store`` fixture on them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import fsspec

from darkroom.pipelines.storage.store_paths import store_path
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
KIND, EMULATORS = "DARKROOM_TEST_STORE", "DARKROOM_TEST_EMULATORS"
"""Which store the tests run on, and the folder in which the emulators are installed."""


class ObjectStore:
    """A server; ``url(...)`` makes a bucket of its own for each test."""

    protocol: ClassVar[str]

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        self._process = subprocess.Popen(self.command(), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self._answers():
            assert self._process.poll() is None, f"the {self.protocol} server ended"
            time.sleep(0.05)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def url(self, name: str = "home") -> str:
        """A prefix in a new bucket. The variables of ``environment`` are set."""
        bucket = f"b{uuid4().hex[:12]}"
        self.make_bucket(bucket)
        return f"{self.protocol}://{bucket}/{name}"

    def make_bucket(self, name: str) -> None:
        fsspec.filesystem(self.protocol, use_listings_cache=False).mkdir(name)

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status > 0
        except OSError:
            return False
        finally:
            connection.close()


class S3Server(ObjectStore):
    """moto's. With a ``log`` a server that is started again has all that the killed one had; without it has nothing."""

    protocol = "s3"

    def __init__(self, log: Path | None = None) -> None:
        super().__init__()
        self._log = log

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def command(self) -> list[str]:
        if self._log is not None:
            return [sys.executable, "-m", "tests.lasting_s3", str(self.port), str(self._log)]
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]


class GcsServer(ObjectStore):
    """gcp-storage-emulator, which asks for no credentials."""

    protocol = "gs"

    @property
    def environment(self) -> dict[str, str]:
        # the emulator has no folders: gcsfs would ask Google for the kind of each bucket; every process would look for
        # a machine of Google's that gives it credentials, for seven seconds
        return {
            "STORAGE_EMULATOR_HOST": self.address,
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            "NO_GCE_CHECK": "true",
        }

    def command(self) -> list[str]:
        code = "from gcp_storage_emulator.__main__ import main; main()"
        return [sys.executable, "-c", code, "start", "--host=127.0.0.1", f"--port={self.port}", "--in-memory"]


class AzureServer(ObjectStore):
    """Azurite, with its account that everybody knows."""

    protocol = "az"

    @property
    def environment(self) -> dict[str, str]:
        key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
        account = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key}"
        return {"AZURE_STORAGE_CONNECTION_STRING": f"{account};BlobEndpoint={self.address}/devstoreaccount1;"}

    def command(self) -> list[str]:
        program = Path(os.environ[EMULATORS]) / "node_modules" / ".bin" / "azurite-blob"
        # the client is ahead of it by some versions of the protocol
        options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        return [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), *options]


@dataclass
class Traffic:
    """What the answers to this process's requests to S3 held."""

    n_requests: int = 0
    n_bytes: int = 0

    def count(self, event_name: str, response_dict: Mapping[str, Any], **_: Any) -> None:
        self.n_requests += 1
        if not event_name.endswith(".HeadObject"):  # which has the length of what it does not send
            self.n_bytes += int(response_dict["headers"].get("content-length", 0))


@contextmanager
def s3_traffic() -> Iterator[Traffic]:
    """Of all clients that ``place`` gives meanwhile."""
    traffic, client = Traffic(), store_path("s3://any/home").fs
    client.connect()
    client.s3.meta.events.register("response-received.s3", traffic.count)
    try:
        yield traffic
    finally:
        client.s3.meta.events.unregister("response-received.s3", traffic.count)


STORES: Mapping[str, type[ObjectStore]] = {kind.protocol: kind for kind in (S3Server, GcsServer, AzureServer)}


def object_store_server(kind: str | None = None) -> AbstractContextManager[ObjectStore]:
    """Of a kind; None: of that on which the tests run."""
    return running(STORES[kind or os.environ.get(KIND, "s3")]())


@contextmanager
def running(server: ObjectStore) -> Iterator[ObjectStore]:
    """The server; clients of this process that know another one's address, or then this one's, are forgotten."""
    clients = fsspec.get_filesystem_class(server.protocol)
    server.start()
    clients.clear_instance_cache()
    try:
        yield server
    finally:
        server.kill()
        clients.clear_instance_cache()
