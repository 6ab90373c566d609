"""The sandbox as TRL's environment: one instance per rollout slot, with the one tool ``run_python``.

The pool is one per process, started by the first program and closed at exit. Rollouts of one prompt share a group, so
its images are decoded once. TRL makes every public method of the class a tool, so helpers begin with an underscore.

Not covered: programs of one batch run one after another, because TRL 1.16 calls plain tools in turn.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.digest import digest_bytes, seed_from
from pipelines.layouts.trl import content_parts
from pipelines.protocols import PROTOCOLS
from pipelines.records import ImageRef, Observation
from sandbox import Group, Limits, SandboxError, SandboxPool, Session, ShownImage


@dataclass(slots=True)
class _Lease:
    group: Group
    n_users: int = 0


@dataclass(slots=True)
class Workshop:
    """The process's pool and the groups that rollouts are using, one per prompt."""

    limits: Limits = field(default_factory=Limits)
    _pool: SandboxPool | None = None
    _leases: dict[str, _Lease] = field(default_factory=dict)

    def take(self, prompt: str, images: Sequence[Any], videos: Sequence[bytes] = ()) -> Group:
        """The group of a prompt, opened by its first rollout."""
        if self._pool is None:
            self._pool = SandboxPool(limits=self.limits)
            atexit.register(self.close)
        if prompt not in self._leases:
            self._leases[prompt] = _Lease(self._pool.group(images=list(images), videos=list(videos)))
        lease = self._leases[prompt]
        lease.n_users += 1
        return lease.group

    def give_back(self, prompt: str) -> None:
        """Closes the group when its last rollout is done with it."""
        lease = self._leases[prompt]
        lease.n_users -= 1
        if not lease.n_users:
            del self._leases[prompt]
            lease.group.close()

    def close(self) -> None:
        """Ends all groups and the pool; the next ``take`` starts anew."""
        if self._pool is not None:
            atexit.unregister(self.close)
            self._pool.close()
        self._pool = None
        self._leases.clear()


WORKSHOP = Workshop()
"""This process's workshop."""


class SandboxEnvironment:
    """One rollout's sandbox. TRL resets it with the dataset's row before every rollout.

    ``n_executions`` and ``n_ok`` count programs; ``fault`` is set when the sandbox itself failed.
    """

    n_slots = 0

    def __init__(self) -> None:
        self._slot = SandboxEnvironment.n_slots
        SandboxEnvironment.n_slots += 1
        self._session: Session | None = None
        self._prompt = ""
        self._row: dict[str, Any] = {}
        self.n_executions = self.n_ok = 0
        self.fault: SandboxError | None = None

    def reset(self, **row: Any) -> None:
        """Takes ``trajectory_id`` or ``sample_id``, ``protocol``, ``images``, ``videos`` (bytes); leaves the prompt."""
        self._end()
        self._row = row
        self.n_executions = self.n_ok = 0
        self.fault = None

    def run_python(self, code: str) -> list[dict[str, Any]]:
        """
        Execute Python code in the sandbox and show what it printed and the images that it made.

        Args:
            code: The program. The first image is the file `image_path`.
        """
        self.n_executions += 1
        try:
            seen = self._opened().run(code)
        except SandboxError as error:
            self.fault = error
            return self._shown(Observation("killed", "", error=f"{type(error).__name__}: {error}"), ())
        self.n_ok += seen.ok
        refs = tuple(_reference(image) for image in seen.images)
        return self._shown(Observation(seen.status, seen.text, refs, seen.error), seen.images)

    def _opened(self) -> Session:
        if self._session is None:
            prompt = self._row["trajectory_id" if "trajectory_id" in self._row else "sample_id"]
            group = WORKSHOP.take(prompt, self._row.get("images") or (), self._row.get("videos") or ())
            self._prompt = prompt
            self._session = group.session(seed=seed_from(prompt, self._slot))
            self._set_up(self._session)
        return self._session

    def _set_up(self, session: Session) -> None:
        protocol = PROTOCOLS[self._row["protocol"]]
        if protocol.setup and not (seen := session.run(protocol.setup)).ok:
            raise SandboxError(f"{protocol.name}'s setup: {seen.status}: {seen.error or seen.text}")

    def _end(self) -> None:
        if self._session is not None:
            self._session.close()
        if self._prompt:
            WORKSHOP.give_back(self._prompt)
        self._session, self._prompt = None, ""

    def _shown(self, seen: Observation, images: Sequence[ShownImage]) -> list[dict[str, Any]]:
        parts = PROTOCOLS[self._row["protocol"]].wrap(seen)
        return content_parts(parts, [image.pixels for image in images])


def _reference(image: ShownImage) -> ImageRef:
    pixels = image.pixels
    return ImageRef(digest_bytes(pixels.tobytes()), pixels.width, pixels.height, pixels.mode, "PNG")
