"""A client of an application in this process: the same application, without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx


@asynccontextmanager
async def client_of(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """While the lifespan of ``app`` lasts, which other layers may be around."""
    inner = app
    while not hasattr(inner, "router"):
        inner = getattr(inner, "app", None) or inner._app
    async with (
        inner.router.lifespan_context(inner),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=120) as client,
    ):
        yield client
