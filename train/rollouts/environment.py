"""The sandbox as TRL's environment: one instance per rollout slot, reset with the dataset's row before every rollout.

``trainer.py`` runs a rollout's programs through it, ahead of time where one is complete while other rollouts are still
being written. With TRL's own ``GRPOTrainer`` the tool ``run_python`` does the same in turn. TRL makes every public
method of the class a tool, so all others begin with an underscore.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Any

from PIL import Image

from pipelines.digest import seed_from
from pipelines.layouts.trl import content_parts
from pipelines.protocols import PROTOCOLS, Protocol
from pipelines.records import Edit, ImageRef, Observation
from pipelines.rejects import Reason, RowFault
from sandbox import Group, ImageUnreadable, SandboxError, SandboxUnavailable, Session
from sandbox import Observation as Seen
from train.models import viewable
from train.rollouts.outcomes import pixel_ref
from train.rollouts.workshop import WORKSHOP

RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<code>\s*```python\s*\n",
            "close_pattern": r"\n?```\s*</code>\s*",
            "repeats": True,
            "content": "text",
            "transform": {
                "type": "function",
                "function": {"name": "run_python", "arguments": {"code": "{content}"}},
            },
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
"""For TRL's own tool loop: tells transformers that a ``<code>`` block of thyme is a call of ``run_python``."""


class SandboxEnvironment:
    """One rollout's sandbox.

    ``n_executions`` and ``n_ok`` count programs; ``pixels`` are the images that they showed, by ``ImageRef.sha256``;
    ``seconds`` is what they took; ``broken`` says why the rollout cannot be trusted: the sandbox failed, or its session
    is gone with its state. ``fault`` is set when this machine cannot execute anything.
    """

    n_slots = 0

    def __init__(self) -> None:
        self._slot = SandboxEnvironment.n_slots
        SandboxEnvironment.n_slots += 1
        self._lock = threading.Lock()
        self._group: Group | None = None
        self._session: Session | None = None
        self._ahead: tuple[str, Future[Observation]] | None = None
        self.reset()

    def reset(self, **row: Any) -> None:
        """Takes ``trajectory_id`` or ``sample_id``, ``protocol``, ``images``, ``videos`` (bytes); leaves the prompt.

        With ``image_files``, the images' bytes as they are stored, a group is opened sooner: none is encoded anew.
        """
        self._end()
        self._row = row
        self.n_executions = self.n_ok = 0
        self.seconds = 0.0
        self.pixels: dict[str, Image.Image] = {}
        self.broken: str | None = None
        self.fault: SandboxUnavailable | None = None

    def run_python(self, code: str) -> list[dict[str, Any]]:
        """
        Execute Python code in the sandbox and show what it printed and the images that it made.

        Args:
            code: The program. The first image is the file `image_path`.
        """
        try:
            seen = self._execute(code)
        except RowFault as fault:
            seen = Observation("killed", "", error=str(fault))
        parts = self._protocol.wrap(seen)
        return content_parts(parts, self._shown(seen))

    async def _run(self, code: str) -> Observation:
        """As ``_execute``; what was begun ahead is not executed again."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == code:
            return await asyncio.wrap_future(ahead[1])
        return await asyncio.wrap_future(WORKSHOP.threads.submit(self._execute, code))

    def _begin(self, code: str) -> None:
        """Starts a program that the rollout is about to ask for."""
        self._ahead = (code, WORKSHOP.threads.submit(self._execute, code))

    @property
    def _protocol(self) -> Protocol:
        return PROTOCOLS[self._row["protocol"]]

    def _execute(self, code: str) -> Observation:
        """Raises ``RowFault`` (sandbox_failed, unreadable_image) when the sandbox itself cannot execute the program."""
        start = time.monotonic()
        with self._lock:
            self.n_executions += 1
            try:
                seen = self._opened().run(code)
                if seen.broken:
                    raise SandboxError(f"the session is gone: {seen.status}: {seen.error or 'no reason given'}")
            except SandboxError as error:
                raise self._failed(error) from error
            finally:
                self.seconds += time.monotonic() - start
            recorded = self._recorded(seen)
            self.n_ok += recorded.status == "ok"
            return recorded

    def _failed(self, error: SandboxError) -> RowFault:
        self.broken = f"{type(error).__name__}: {error}"
        if isinstance(error, SandboxUnavailable):
            self.fault = error
        reason = Reason.UNREADABLE_IMAGE if isinstance(error, ImageUnreadable) else Reason.SANDBOX_FAILED
        return RowFault(reason, self.broken)

    def _opened(self) -> Session:
        if self._session is None:
            prompt = self._prompt
            images = self._row.get("image_files") or self._row.get("images") or ()
            self._group = WORKSHOP.take(prompt, images, self._row.get("videos") or ())
            self._session = self._group.session(seed=seed_from(prompt, self._slot))
            setup = self._protocol.setup
            if setup and not (seen := self._session.run(setup)).ok:
                raise SandboxError(f"{self._protocol.name}'s setup: {seen.status}: {seen.error or seen.text}")
        return self._session

    def _shown(self, seen: Observation) -> list[Image.Image]:
        return [self.pixels[image.sha256] for image in seen.images]

    @property
    def _prompt(self) -> str:
        name: str = self._row["trajectory_id" if "trajectory_id" in self._row else "sample_id"]
        return name

    def _recorded(self, seen: Seen) -> Observation:
        edits = tuple(Edit(edit.kind, edit.before, edit.after) for edit in seen.edits)
        shown = tuple(self._kept(image.pixels) for image in seen.images)
        return viewable(Observation(seen.status, seen.text, shown, seen.error, edits))

    def _kept(self, pixels: Image.Image) -> ImageRef:
        ref = pixel_ref(pixels)
        self.pixels[ref.sha256] = pixels
        return ref

    def _end(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead[1].exception()  # waits; a program that nobody asked for may fail as it likes
        if self._session is not None:
            self._session.close()
        if self._group is not None:
            WORKSHOP.give_back(self._prompt)
        self._session = self._group = None
