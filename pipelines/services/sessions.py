"""Registry of what clients hold open, and a service's sessions: named by secrets, limited, ended after idleness."""

import asyncio
import os
import secrets
import time
import typing
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Generic, Literal, TypeVar

from PIL import Image
from pydantic import BaseModel, Field, ValidationError

from darkroom import sandbox
from darkroom.pipelines.models.messages import observed
from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records import ImageRef, Observation
from darkroom.pipelines.services import Kind, ServiceError, invalid
from darkroom.pipelines.services.files import EncodedFile, ObservationPart, numbered
from darkroom.pipelines.services.tools import SandboxTool, Size, no_tool, tools_for
from darkroom.sandbox.errors import raised_as


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

    def __iter__(self) -> Iterator[H]:
        return iter(self._open.values())

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
        if (opened := self._open.get(name)) is None:
            raise ServiceError(
                "unknown_session",
                f"no such {self.what}: it was ended, or idle for {self.idle_seconds:g} s, or never opened here",
            )
        return opened

    async def close(self, name: str) -> None:
        """Ends one; nothing happens where there is none."""
        if (opened := self._open.pop(name, None)) is not None:
            await opened.close()

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(min(self.idle_seconds / 4, 10.0))
            for name, opened in list(self._open.items()):
                if not opened.busy and time.monotonic() - opened.used > self.idle_seconds:
                    await self.close(name)


COUNTED = ("figure ", "display ")
"""How images are named that ``crop_image`` counts; those that code saved have a file's name."""


class OpenRequest(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """Request for a session."""

    protocol: Literal["thyme", "pyvision", "tool_call"] = "thyme"
    """Of observations and tools."""
    images: list[EncodedFile] = Field(default=[], max_length=64)
    """Image files, base64 or data URLs."""
    videos: list[EncodedFile] = Field(default=[], max_length=64)
    """Video files, base64 or data URLs."""
    names: list[str] = Field(default=[], max_length=64)
    """What the prompt calls the images."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Of everything that programs draw by chance."""
    special_tokens: list[Annotated[str, Field(max_length=128)]] = Field(default=[], max_length=4096)
    """Of the tokenizer that reads what is shown; there they lose their meaning."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The record, the pixels of its images, and the parts that the protocol makes of it."""

    observation: Observation
    images: tuple[Image.Image, ...]
    parts: list[ObservationPart]
    shown: sandbox.Observation
    """As the sandbox gave it."""


@dataclass(slots=True)
class OpenSession:
    """A session with the group of its images. ``sizes`` are those of its images, as ``crop_image`` counts them."""

    task: OpenRequest
    group: sandbox.Group
    session: sandbox.Session
    sizes: list[Size]
    used: float = field(default_factory=time.monotonic)
    n_calls: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    counts: bool = True

    def count(self, observation: sandbox.Observation) -> None:
        """Adds the images that a program showed; from where some could not be shown, their numbers are not known."""
        self.counts = self.counts and not observation.n_over_limit
        if self.counts:
            self.sizes += [image.pixels.size for image in observation.images if image.name.startswith(COUNTED)]

    @property
    def busy(self) -> bool:
        return self.n_calls > 0

    async def close(self) -> None:
        """Ends it. A call that runs ends as ``killed``."""
        await asyncio.shield(asyncio.to_thread(self.group.close))

    @property
    def tools(self) -> tuple[type[SandboxTool], ...]:
        return tools_for(self.task.protocol, n_images=len(self.task.images), n_videos=len(self.task.videos))


_MOST_ASLEEP = 16
"""Calls that may run beside those that have a CPU: each may end with the largest answer."""


class Sessions:
    """All sessions of one pool: the ``registry`` of those that are open, and at most ``most_waiting`` calls of them.
    No call begins while images of ``most_held`` bytes wait to be sent."""

    def __init__(
        self, pool: sandbox.SandboxPool, *, most_open: int = 256, most_waiting: int = 1024, idle_seconds: float = 600.0
    ) -> None:
        self.pool, self.most_waiting = pool, most_waiting
        self.registry = Registry[OpenSession]("session", most_open=most_open, idle_seconds=idle_seconds)
        n_cpus = os.cpu_count() or 1
        self.most_held = (256 + 64 * n_cpus) << 20
        self._running = asyncio.Semaphore(n_cpus + _MOST_ASLEEP)
        self._n_calls = self._n_held = 0

    async def open(self, task: OpenRequest) -> str:
        """Open a session; returns its name. Raises ``ServiceError``."""
        self.registry.require_room()
        with _sandbox_errors():
            return await self.registry.add(self._opened(task))

    async def _opened(self, task: OpenRequest) -> OpenSession:
        group = await self.pool.agroup(task.images, videos=task.videos, names=task.names)
        try:
            session = await group.asession(seed=task.seed)
            sizes = await _set_up(session, task)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(group.close))
            raise
        return OpenSession(task, group, session, sizes)

    @asynccontextmanager
    async def call(self, name: str, tool: str, arguments: Any) -> AsyncIterator[ToolOutcome]:
        """Run a tool of a session, after its earlier calls; its images count meanwhile. Raises ``ServiceError``."""
        opened = self.registry.get(name)
        offered = {each.tool: each for each in opened.tools}
        if (chosen := offered.get(tool)) is None:
            raise no_tool(tool, offered)
        with raised_as(lambda error: invalid(error, of=tool), ValidationError):
            request = chosen.model_validate(arguments)
        if self._n_calls >= self.most_waiting:
            raise ServiceError("too_busy", f"{self.most_waiting} calls wait, the most that may: ask again in a second")
        n_bytes = 0
        self._n_calls += 1
        opened.n_calls += 1
        try:
            async with opened.lock:
                async with self._running:
                    outcome = await self._run(name, opened, request)
                    n_bytes = sum(3 * image.width * image.height for image in outcome.images)
                    self._n_held += n_bytes
                yield outcome
        finally:
            self._n_held -= n_bytes
            self._n_calls -= 1
            opened.n_calls -= 1
            opened.used = time.monotonic()

    async def _run(self, name: str, opened: OpenSession, request: SandboxTool) -> ToolOutcome:
        program = request.program(opened.sizes)
        if self._n_held >= self.most_held:
            raise ServiceError("too_busy", "images of other answers wait to be read: ask again in a second")
        try:
            with _sandbox_errors():
                observation = await _ran(opened.session, program)
        except ServiceError:
            if opened.session.lost:
                await self.registry.close(name)
            raise
        record = await asyncio.to_thread(
            observed,
            observation,
            opened.task.special_tokens,
            ref=lambda image: ImageRef("", image.width, image.height, image.mode, "PNG"),
        )
        opened.count(observation)
        images = tuple(image.pixels for image in observation.images)[: len(record.images)]
        return ToolOutcome(record, images, numbered(PROTOCOLS[opened.task.protocol], record), observation)


async def _set_up(session: sandbox.Session, task: OpenRequest) -> list[Size]:
    """Open the videos and run the protocol's setup; the images' sizes, which the sandbox reads: no decoder here."""
    for number in range(len(task.videos)):  # what their first use does anyway; a reader stays open, at its first frame
        if not (observation := await _ran(session, f"video_clue_{number}.seek(0)")).ok:
            reason = observation.error or observation.status
            raise ServiceError("unreadable_image", f"video {number} cannot be read: {reason.partition(' (line ')[0]}")
    if not (setup := PROTOCOLS[task.protocol].setup):
        return []
    sides = "side for number in range({}) for side in Image.open(globals()[f'image_path_{{number}}']).size"
    for program in (setup, f"print(*({sides.format(len(task.images))}))"):
        if not (observation := await _ran(session, program)).ok:
            why = observation.error or observation.text
            raise sandbox.SandboxError(f"the setup of {task.protocol}: {observation.status}: {why}")
    numbers = list(map(int, observation.text.split()))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


async def _ran(session: sandbox.Session, program: str) -> sandbox.Observation:
    """Run a program. Raises ``ServiceError`` (infrastructure_failed) where the session ended for another reason."""
    observation = await session.arun(program)
    if session.lost:
        raise ServiceError("infrastructure_failed", f"the session is gone: {observation.error or 'no reason given'}")
    return observation


_KINDS: dict[type[sandbox.SandboxError], Kind] = {
    sandbox.ImageUnreadable: "unreadable_image",
    sandbox.InputsTooLarge: "request_too_large",
    sandbox.ResourcesExhausted: "too_busy",
    sandbox.SandboxClosed: "infrastructure_failed",
    sandbox.SandboxUnavailable: "infrastructure_failed",
    sandbox.SandboxError: "invalid_request",
}
"""The first that an error is of counts."""


def _of_service(error: sandbox.SandboxError) -> ServiceError:
    return ServiceError(next(kind for of, kind in _KINDS.items() if isinstance(error, of)), str(error))


_sandbox_errors = partial(raised_as, _of_service, sandbox.SandboxError)
