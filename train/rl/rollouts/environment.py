"""The sandbox as TRL's environment: one instance per rollout slot, reset with the dataset's row before every rollout.

``trainer.py`` runs a rollout's code through it, ahead of time where code is complete while other turns are still
generated. With TRL's own ``GRPOTrainer`` the tool ``run_python`` does the same in turn. TRL makes every public method
of the class a tool, so all others begin with an underscore.

Rollouts of one prompt share a group of the process's pool (``darkroom.pipelines.generation.sandbox_sessions``), whose
images are decoded once.
"""

import asyncio
import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from PIL import Image
from trl.trainer.grpo_trainer import GRPOTrainer

from darkroom.pipelines.generation.sandbox_sessions import close_process_pool, process_pool
from darkroom.pipelines.models.messages import observed
from darkroom.pipelines.models.protocols import PROTOCOLS, Protocol
from darkroom.pipelines.models.tasks import image_names
from darkroom.pipelines.publishing.layouts.trl import content_parts
from darkroom.pipelines.records import Observation
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.tracing import span
from darkroom.sandbox import (
    Group,
    ImageUnreadable,
    InputsTooLarge,
    Limits,
    Observation as SandboxObservation,
    SandboxError,
    SandboxUnavailable,
    Session,
)

_MOST_WAITING = 64
"""Executions that may wait for one of the pool's slots at a time, each in a thread."""


@dataclass(slots=True)
class _Lease:
    opening: threading.Lock = field(default_factory=threading.Lock)
    group: Group | None = None
    n_users: int = 0


@dataclass(slots=True)
class PromptGroups:
    """The groups that rollouts share, by prompt and its names of the images. Thread-safe; a group is opened outside of
    the lock: decoding a large image takes a while, and every execution needs ``threads``."""

    limits: Limits = field(default_factory=Limits)
    _threads: ThreadPoolExecutor | None = None
    _leases: dict[Hashable, _Lease] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads that wait for executions; the code itself runs in the pool's processes."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST_WAITING, thread_name_prefix="darkroom-program")
            return self._threads

    def acquire(
        self, prompt: Hashable, images: Sequence[bytes | Image.Image], videos: Sequence[bytes], names: Sequence[str]
    ) -> Group:
        """The group of a prompt, opened by its first rollout; others wait. After an error the next one tries again."""
        with self._lock:
            lease = self._leases.setdefault(prompt, _Lease())
            lease.n_users += 1
        try:
            with lease.opening:
                if lease.group is None:
                    lease.group = process_pool(self.limits).group(list(images), videos=list(videos), names=names)
                return lease.group
        except BaseException:
            self.release(prompt)
            raise

    def release(self, prompt: Hashable) -> None:
        with self._lock:
            lease = self._leases.get(prompt)
            if lease is None:  # all groups were closed meanwhile
                return
            lease.n_users -= 1
            if lease.n_users:
                return
            del self._leases[prompt]
        if lease.group is not None:
            lease.group.close()

    def close(self) -> None:
        """End all groups and the pool; the next ``acquire`` starts a new one."""
        with self._lock:
            threads, self._threads = self._threads, None
            self._leases.clear()
        close_process_pool(self.limits)
        if threads is not None:
            threads.shutdown()


PROMPT_GROUPS = PromptGroups()
"""This process's groups."""


_TEMPLATES = yaml.safe_load(Path(__file__).with_name("response_templates.yaml").read_text(encoding="utf-8"))
PLAIN_RESPONSE: dict[str, Any] = _TEMPLATES["plain"]
"""TRL requires a response template where there are tools; in ``SandboxGRPOTrainer`` the protocols parse the turns."""
RESPONSE_TEMPLATE: dict[str, Any] = _TEMPLATES["with_calls"]
"""A template for TRL's own tool loop: a ``<code>`` block of thyme is a call of ``run_python``."""


class SandboxEnvironment:
    """One rollout's sandbox.

    ``pixels`` are the images that its code showed, by ``ImageRef.sha256``; ``seconds`` is how long it ran;
    ``broken`` says why the rollout cannot be trusted: the sandbox failed, or its session is gone with its state.
    ``n_over_limit`` counts the images that its code wanted to show beyond the sandbox's limits.
    ``error`` is set when this machine cannot execute anything.
    ``special_tokens`` are those of the tokenizer that reads the observations.
    """

    n_slots = 0
    special_tokens: tuple[str, ...] = ()

    def __init__(self, slot: int | None = None) -> None:
        """``slot`` is part of the seed of its sessions; default: the next of this process's training."""
        if slot is None:
            slot = SandboxEnvironment.n_slots
            SandboxEnvironment.n_slots += 1
        self._slot = slot
        self._lock = threading.Lock()
        self._group: Group | None = None
        self._session: Session | None = None
        self._ahead: tuple[str, Future[Observation]] | None = None
        self.reset()

    def reset(self, **row: Any) -> None:
        """Take ``trajectory_id`` or ``sample_id``, ``protocol``, ``images``, ``videos`` (bytes); leave the prompt. With
        ``image_files``, the images' bytes as they are stored, a group is opened sooner: no image is encoded again."""
        self._end()
        self._row = row
        self.seconds = 0.0
        self.pixels: dict[str, Image.Image] = {}
        self.broken: str | None = None
        self.n_over_limit = 0
        self.error: SandboxUnavailable | None = None

    def run_python(self, code: str) -> list[dict[str, Any]]:
        """
        Execute Python code in the sandbox and show what it printed and the images that it made.

        Args:
            code: The program. The first image is the file `image_path`.
        """
        try:
            observation = self._execute(code)
        except RowError as error:
            observation = Observation("killed", "", error=str(error))
        return content_parts(self._protocol.wrap(observation), self._shown(observation))

    async def _run(self, code: str) -> Observation:
        """Execute code as ``_execute``, unless it was started ahead."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead[0] != code:
            ahead = code, PROMPT_GROUPS.threads.submit(self._execute, code)
        return await asyncio.wrap_future(ahead[1])

    def _begin(self, code: str) -> None:
        self._ahead = (code, PROMPT_GROUPS.threads.submit(self._execute, code))

    @property
    def _protocol(self) -> Protocol:
        return PROTOCOLS[self._row["protocol"]]

    def _execute(self, code: str) -> Observation:
        """Raises ``RowError`` (sandbox_failed, unreadable_image) when the sandbox itself cannot execute code."""
        start = time.monotonic()
        with self._lock:
            try:
                with span("sandbox run") as note:
                    observation = self._opened().run(code)
                    if observation.broken:
                        why = observation.error or "no reason given"
                        raise SandboxError(f"the session is gone: {observation.status}: {why}")
                    note({"darkroom.status": str(observation.status), "darkroom.n_images": len(observation.images)})
            except SandboxError as error:
                self.broken = f"{type(error).__name__}: {error}"
                if isinstance(error, SandboxUnavailable):
                    self.error = error
                unreadable = isinstance(error, (ImageUnreadable, InputsTooLarge))
                raise RowError(Reason.UNREADABLE_IMAGE if unreadable else Reason.SANDBOX_FAILED, self.broken) from error
            finally:
                self.seconds += time.monotonic() - start
            return self._recorded(observation)

    def _opened(self) -> Session:
        if self._session is None:
            prompt = self._prompt
            images = self._row.get("image_files") or self._row.get("images") or ()
            names = self._image_names
            self._group = PROMPT_GROUPS.acquire((prompt, *names), images, self._row.get("videos") or (), names)
            self._session = self._group.session(seed=seed_from(prompt, self._slot))
            setup = self._protocol.setup
            if setup and not (observation := self._session.run(setup)).ok:
                why = observation.error or observation.text
                raise SandboxError(f"{self._protocol.name}'s setup: {observation.status}: {why}")
        return self._session

    def _shown(self, observation: Observation) -> list[Image.Image]:
        return [self.pixels[image.sha256] for image in observation.images]

    @property
    def _image_names(self) -> Sequence[str]:
        question = self._row.get("asked")
        return self._row.get("image_names") or (image_names(question.sample.question) if question else ())

    @property
    def _prompt(self) -> str:
        return cast(str, self._row["trajectory_id" if "trajectory_id" in self._row else "sample_id"])

    def _recorded(self, observation: SandboxObservation) -> Observation:
        self.n_over_limit += observation.n_over_limit
        recorded = observed(observation, self.special_tokens)
        pairs = zip(recorded.images, observation.images, strict=False)
        self.pixels |= {ref.sha256: image.pixels for ref, image in pairs}
        return recorded

    def _end(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead[1].exception()  # waits; errors of code that was never requested do not matter
        if self._session is not None:
            self._session.close()
        if self._group is not None:
            PROMPT_GROUPS.release((self._prompt, *self._image_names))
        self._session = self._group = None


class MixedGRPOTrainer(GRPOTrainer):
    """TRL's own trainer, for batches in which some prompts have no images."""

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        ids, images, fields = super()._tokenize_prompts(prompts)
        return ids, None if images is None else [prompt_images or [] for prompt_images in images], fields
