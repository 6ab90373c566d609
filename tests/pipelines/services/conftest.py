"""A service over a pool, asked in process: the same application without a socket."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from darkroom.pipelines.services.http_api import service
from darkroom.pipelines.services.sessions import Sessions
from darkroom.sandbox import Limits, SandboxPool
from tests.asgi import client_of


@pytest.fixture(scope="session")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(limits=Limits(seconds=5)) as pool:
        yield pool


@pytest.fixture
def photo(make_image, encoded) -> str:
    return base64.b64encode(encoded(make_image(3, 320, 240))).decode()


@pytest.fixture
def client(pool: SandboxPool) -> Callable[..., object]:
    """Opens a client of a new service; options are those of ``Sessions`` and ``service``."""

    @asynccontextmanager
    async def open_client(**options: object) -> AsyncIterator[httpx.AsyncClient]:
        of_sessions = {
            name: options.pop(name) for name in ("most_open", "most_waiting", "idle_seconds") if name in options
        }
        async with client_of(service(Sessions(pool, **of_sessions), **options)) as client:
            yield client

    return open_client
