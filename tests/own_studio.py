"""A Label Studio and a home of one's own, beside those of this checkout; what is installed is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from darkroom.annotation.label_studio.server import LabelStudioServer, ServerInfo, wait_until_ready
from darkroom.pipelines.storage.workspace import Workspace
from tests.postgres import postgres


def own_home(folder: Path) -> dict[str, str]:
    """The environment of a home in ``folder`` with the environments that the current home has installed."""
    with Workspace.from_environment() as ours:
        return {"DARKROOM_HOME": str(folder), "DARKROOM_ENVIRONMENTS": str(ours.environments)}


@contextmanager
def running(
    server: LabelStudioServer,
    *,
    port: int | None = None,
    database: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[ServerInfo]:
    """The server, ready, while the context lasts; on SQLite without a ``database``."""
    try:
        started = server.start(port=port, postgres=database, progress=progress)
        wait_until_ready(started, report=lambda seconds: None)
        yield started
    finally:
        server.stop()


@contextmanager
def studio_database(is_postgres: bool) -> Iterator[str | None]:
    """The URL of an empty PostgreSQL; None for SQLite."""
    if not is_postgres:
        yield None
        return
    with postgres("studio") as url:
        yield url
