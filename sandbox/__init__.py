"""Runs model-written Python on images, safely: sessions that keep their state, observations that come back.

    with SandboxPool(limits=Limits(seconds=10, memory_mb=1024)) as pool:
        with pool.group(images=["a.jpg"]) as group, group.session(seed=7) as session:
            observation = session.run("print(image_size)")

A pool is one tree of processes, a group one prompt with its images decoded once, a session one rollout. The code finds
`image_path`, `image_size`, `image_path_0`, `image_clue_0`, …, `video_clue_0`, …, numpy as np, cv2, plt, Image, math, re
and json. What it saves below `/mnt/data/temp_processed_images/` or shows becomes an image of the observation. For many
rollouts in one event loop: `await pool.agroup(...)`, `await group.asession(...)`, `await session.arun(code)`.

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
