"""Registry of what clients hold open: named by secrets, limited in number, ended after long idleness."""

import asyncio
import secrets
import time
import typing
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from darkroom.pipelines.services.errors import ServiceError


class Held(typing.Protocol):
    """A session or an episode. ``used``: when it was last asked for something, by ``time.monotonic``."""

    used: float

    @property
    def busy(self) -> bool:
        """True while it is at work: then it is not idle, however long that takes."""

    async def close(self) -> None:
        """Ends it."""


H = TypeVar("H", bound=Held)


class Registry(Generic[H]):
    """All that is open. ``what`` is the word for one in messages."""

    def __init__(self, what: str, *, most_open: int, idle_seconds: float) -> None:
        self.what, self.most_open, self.idle_seconds = what, most_open, idle_seconds
        self._open: dict[str, H] = {}
        self._n_opening = 0

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While it lasts the idle are ended; in the end all are."""
        idle = asyncio.create_task(self._end_idle())
        try:
            yield
        finally:
            idle.cancel()
            await asyncio.gather(*map(self.close, list(self._open)))
            if not idle.cancelled() and idle.done():
                idle.result()  # raises what ended it before

    def require_room(self) -> None:
        """Check that a further one may be opened. Raises ``ServiceError`` (too_busy)."""
        if len(self._open) + self._n_opening >= self.most_open:
            raise ServiceError("too_busy", f"{self.most_open} {self.what}s are open, the most there may be: end some")

    async def add(self, opening: Awaitable[H]) -> str:
        """The name of what ``opening`` makes, after ``require_room``. Raises what it raises."""
        self._n_opening += 1
        try:
            opened = await opening
        finally:
            self._n_opening -= 1
        name = secrets.token_urlsafe(18)
        self._open[name] = opened
        return name

    def get(self, name: str) -> H:
        """Look up an open one. Raises ``ServiceError`` (unknown_session)."""
        opened = self._open.get(name)
        if opened is None:
            raise ServiceError(
                "unknown_session",
                f"no such {self.what}: it was ended, or idle for {self.idle_seconds:g} s, or never opened here",
            )
        return opened

    async def close(self, name: str) -> None:
        """Ends one; nothing happens where there is none."""
        opened = self._open.pop(name, None)
        if opened is not None:
            await opened.close()

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(min(self.idle_seconds / 4, 10.0))
            for name, opened in list(self._open.items()):
                if not opened.busy and time.monotonic() - opened.used > self.idle_seconds:
                    await self.close(name)
