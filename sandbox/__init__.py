"""Runs model-written Python on images, safely: sessions that keep their state, observations that come back.

    with SandboxPool(limits=Limits(seconds=10, memory_mb=1024)) as pool:
        with pool.group(images=["a.jpg"]) as group, group.session(seed=7) as session:
            observation = session.run("print(image_size)")

A pool is one tree of processes, a group one prompt with its images decoded once, a session one rollout. Many rollouts
in one event loop: `await pool.agroup(...)`, `await group.asession(...)`, `await session.arun(code)`. The names that the
code finds, and what becomes an image of the observation: docs/sandbox_code.md.

Linux only. The boundary is the kernel: against people rather than models, put a virtual machine around it.
"""

from darkroom.sandbox.calls import (
    Artefact as Artefact,
    Edit as Edit,
    Observation as Observation,
    PoolStats as PoolStats,
    ShownImage as ShownImage,
    Spread as Spread,
    Status as Status,
)
from darkroom.sandbox.digest import sandbox_digest as sandbox_digest
from darkroom.sandbox.errors import (
    ImageUnreadable as ImageUnreadable,
    InputsTooLarge as InputsTooLarge,
    ResourcesExhausted as ResourcesExhausted,
    SandboxClosed as SandboxClosed,
    SandboxError as SandboxError,
    SandboxUnavailable as SandboxUnavailable,
)
from darkroom.sandbox.group import Group as Group
from darkroom.sandbox.limits import Limits as Limits
from darkroom.sandbox.pool import SandboxPool as SandboxPool
from darkroom.sandbox.session import Session as Session
