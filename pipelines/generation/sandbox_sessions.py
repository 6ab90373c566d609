"""Executions on the record: what a program printed and showed, from the ledger or from the sandbox.

An execution is determined by the sandbox, the limits, the input images, the seed and every program of the session so
far. What the ledger knows is not executed again; when a later program is new, the session is opened and the earlier
ones are replayed first, so that their variables are there.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from darkroom import sandbox
from darkroom.pipelines.records import ImageRef, Observation, VideoRef, from_row, to_row
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.tracing import span

_Inputs = tuple[tuple[ImageRef, ...], tuple[VideoRef, ...], tuple[str, ...]]
"""Images, videos and what the prompt calls the images."""


class Sandboxes:
    """Sessions of this process's pool, which starts when the first program has to be executed."""

    def __init__(self, store: ImageStore, ledger: Ledger) -> None:
        self.store, self.ledger = store, ledger
        self.limits = sandbox.Limits()
        self.slots = asyncio.Semaphore(os.cpu_count() or 1)
        self.n_executed = 0
        self._groups: dict[_Inputs, RecordedGroup] = {}

    @asynccontextmanager
    async def session(
        self, images: Sequence[ImageRef], videos: Sequence[VideoRef] = (), *, seed: int, names: Sequence[str] = ()
    ) -> AsyncIterator[RecordedSession]:
        """One rollout's session over ``images`` and ``videos``, opened when a program must be executed; ``names``: what
        the prompt calls the images, for the code to open."""
        async with self.group(images, videos, names=names) as group, group.session(seed=seed) as session:
            yield session

    @asynccontextmanager
    async def group(
        self, images: Sequence[ImageRef], videos: Sequence[VideoRef] = (), *, names: Sequence[str] = ()
    ) -> AsyncIterator[RecordedGroup]:
        """One prompt, for several rollouts: its images are decoded once, when the first program must be executed. Rows
        with the same images share the group while their rollouts overlap."""
        inputs = tuple(images), tuple(videos), tuple(names)
        group = self._groups.setdefault(inputs, RecordedGroup(self, *inputs))
        group.n_users += 1
        try:
            yield group
        finally:
            group.n_users -= 1
            if not group.n_users:
                del self._groups[inputs]
                await group.close()


class RecordedGroup:
    """The sessions of one prompt."""

    def __init__(
        self, sandboxes: Sandboxes, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...], names: tuple[str, ...]
    ) -> None:
        self.sandboxes, self.images, self.videos, self.names = sandboxes, images, videos, names
        self.n_users = 0
        self._opening = asyncio.Lock()
        self._group: sandbox.Group | None = None

    @asynccontextmanager
    async def session(self, *, seed: int) -> AsyncIterator[RecordedSession]:
        async with AsyncExitStack() as resources:
            yield RecordedSession(self, seed, resources)

    async def open(self, seed: int, resources: AsyncExitStack) -> sandbox.Session:
        group = await self._opened()
        try:
            session = await asyncio.to_thread(group.session, seed=seed)
        except sandbox.SandboxClosed:  # the group's processes have ended: a new one, and no more
            session = await asyncio.to_thread((await self._opened(instead_of=group)).session, seed=seed)
        resources.push_async_callback(asyncio.to_thread, session.close)
        return session

    async def close(self) -> None:
        if self._group is not None:
            await asyncio.to_thread(self._group.close)

    async def _opened(self, instead_of: sandbox.Group | None = None) -> sandbox.Group:
        async with self._opening:
            if self._group is None or self._group is instead_of:
                await self.close()
                self._group = await asyncio.to_thread(self._start)
            return self._group

    def _start(self) -> sandbox.Group:
        read = self.sandboxes.store.read
        images, videos = list(map(read, self.images)), list(map(read, self.videos))
        return process_pool(self.sandboxes.limits).group(images=images, videos=videos, names=self.names)


_starting = threading.Lock()
_pools: dict[sandbox.Limits, sandbox.SandboxPool] = {}


def process_pool(limits: sandbox.Limits) -> sandbox.SandboxPool:
    """The one pool of this process: it takes seconds to warm up, and a build has dozens of stages."""
    with _starting:
        if limits not in _pools:
            _pools[limits] = sandbox.SandboxPool(limits=limits)
            atexit.register(_pools[limits].close)
        return _pools[limits]


def close_process_pool(limits: sandbox.Limits) -> None:
    """Ends this process's pool with all its groups; ``process_pool`` starts a new one."""
    with _starting:
        pool = _pools.pop(limits, None)
    if pool is not None:
        atexit.unregister(pool.close)
        pool.close()


class RecordedSession:
    """One rollout's executions. State lives across its programs, whether they are recalled or executed."""

    def __init__(self, group: RecordedGroup, seed: int, resources: AsyncExitStack) -> None:
        self._group, self._seed, self._resources = group, seed, resources
        self._sandboxes = group.sandboxes
        self._programs: list[str] = []
        self._session: sandbox.Session | None = None

    async def run(self, code: str) -> Observation:
        """Run ``code`` after all earlier programs. Raises ``RowError`` when the sandbox itself fails."""
        act = await self._sandboxes.ledger.get_or_run("sandbox", self._request(code), lambda: self._execute(code))
        self._programs.append(code)
        return from_row(Observation, act.result)

    def _request(self, code: str) -> dict[str, Any]:
        group = self._group
        videos = {"videos": [video.sha256 for video in group.videos]} if group.videos else {}
        names = {"names": list(group.names)} if group.names else {}
        inputs = {"images": [image.sha256 for image in group.images], **videos, **names}
        programs = {"seed": self._seed, "programs": [*self._programs, code]}
        return {"sandbox": sandbox.sandbox_digest(self._sandboxes.limits), **inputs, **programs}

    async def _execute(self, code: str) -> CachedCall:
        home = self._sandboxes
        async with home.slots:
            try:
                with span("sandbox run") as note:
                    if self._session is None:
                        self._session = await self._group.open(self._seed, self._resources)
                        for program in self._programs:  # so that their variables are there
                            await self._session.arun(program)
                    observation = await self._session.arun(code)
                    if self._session.lost:
                        raise sandbox.SandboxClosed(observation.error)  # not a result: the next run executes it again
                    note({"darkroom.status": str(observation.status), "darkroom.n_images": len(observation.images)})
            except sandbox.SandboxUnavailable:
                raise  # not this row's error: no row can be executed
            except (sandbox.ImageUnreadable, sandbox.InputsTooLarge) as error:
                raise RowError(Reason.UNREADABLE_IMAGE, f"the sandbox refuses it: {error}") from error
            except sandbox.SandboxError as error:
                raise RowError(Reason.SANDBOX_FAILED, f"{type(error).__name__}: {error}") from error
        home.n_executed += 1
        stored = await asyncio.to_thread(self._stored, observation, code)  # encoding takes as long as many programs
        return CachedCall(stored, seconds=observation.seconds)

    def _stored(self, observation: sandbox.Observation, code: str) -> dict[str, Any]:
        """The observation's row, its images in the store, derived from the session's first image by this program."""
        inputs: tuple[ImageRef | VideoRef, ...] = (*self._group.images, *self._group.videos)
        parent = inputs[0].sha256 if inputs else None
        made_by = digest([*self._programs, code])
        add = self._sandboxes.store.add_pixels
        return {
            "status": str(observation.status),
            "text": observation.text,
            "images": [to_row(add(image.pixels, parent=parent, made_by=made_by)) for image in observation.images],
            "error": observation.error,
            "edits": [to_row(edit) for edit in observation.edits],
        }
