"""The agent: a question in, rollouts out. Turns and executions are on the workspace's ledger, and paid for once.

Its image store keeps the latest files in memory. A question's image is read twice right after it came, for the model
and for the sandbox, and each crop once: readers get the bytes that were stored, which are not opened and digested
again. An image that comes with another question is not decoded again, and a plain PNG not at all, as sandbox and model
decode it anyway.
"""

import asyncio
import struct
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.models.policies import PolicyUnavailable, RecordedPolicy
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, VideoRef, to_row
from darkroom.pipelines.records.reject_reasons import RETRYABLE, RowError
from darkroom.pipelines.services.errors import ServiceError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.media_validation import MAX_PIXELS, probe
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox import SandboxUnavailable
from darkroom.train.evaluation.output import trajectory_of
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, open_policy, run_rollout, task_of
from darkroom.train.evaluation.settings import AgentSettings

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MODES = {(8, 0): "L", (8, 2): "RGB"}
"""Modes that are stored unconverted, by bits of a channel and colour type; RGBA may be transparent."""
_PLAIN = {b"IHDR", b"IDAT", b"IEND", b"bKGD", b"cHRM", b"gAMA", b"iCCP", b"pHYs", b"sBIT", b"sRGB", b"tIME"}
"""Chunks that neither turn an image nor make it transparent or animated."""


def plain_png(data: bytes) -> tuple[int, int, str] | None:
    """Read width, height and Pillow's mode of a PNG that needs no conversion, each of whose chunks has the right CRC.
    None for any other file. Pixels may still not decode where the writer of the file was wrong."""
    if not data.startswith(_SIGNATURE):
        return None
    start, kind, header, has_pixels = len(_SIGNATURE), b"", b"", False
    while kind != b"IEND":
        if start + 12 > len(data):
            return None
        length, kind = struct.unpack_from(">I4s", data, start)
        end = start + 8 + length
        crc = zlib.crc32(memoryview(data)[start + 4 : end]).to_bytes(4, "big")
        if kind not in _PLAIN or (kind == b"IHDR") is bool(header) or data[end : end + 4] != crc:
            return None
        header = header or data[start + 8 : end]
        has_pixels |= kind == b"IDAT"
        start = end + 4
    if len(header) != 13 or not has_pixels:
        return None
    width, height, depth, colours = struct.unpack_from(">IIBB", header)
    mode = _MODES.get((depth, colours))
    return (width, height, mode) if mode and width and height else None


MOST_BYTES = 128 * 2**20
_END_BYTES = 64
"""Last bytes of a file, its key before all of it is compared: with a digest as key a new file is digested twice."""


class RecentImages(ImageStore):
    """An image store that keeps the last ``most_bytes`` that were stored through it in memory."""

    def __init__(self, store: ImageStore, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(store.url, store._cache)
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._sound: dict[bytes, ImageRef] = {}
        """The decoded ones among them, by their end."""
        self._lock = threading.Lock()  # images are stored and read in several threads

    def ingest(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageRef:
        """Store an image; a plain PNG whose CRCs are right is not decoded."""
        earlier = self._sound.get(data[-_END_BYTES:])
        if earlier and earlier.width * earlier.height <= max_pixels and self._recent.get(earlier.sha256) == data:
            self._put(data)
            return earlier
        plain = plain_png(data)
        if plain is not None:
            width, height, mode = plain
            if width * height <= max_pixels:
                return ImageRef(self._put(data), width, height, mode, "PNG")
        image = super().ingest(data, max_pixels=max_pixels)
        if self._recent.get(image.sha256) == data:  # else it is another one, derived from it
            self._sound[data[-_END_BYTES:]] = image
        return image

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        """Read a file, from memory where it is recent."""
        data = self._recent.get(ref if isinstance(ref, str) else ref.sha256)
        return super().read(ref) if data is None else data

    def _put(self, data: bytes) -> str:
        sha256 = super()._put(data)
        with self._lock:
            if sha256 in self._recent:
                self._recent.move_to_end(sha256)
            elif len(data) <= self._most_bytes:
                self._recent[sha256] = data
                self._n_bytes += len(data)
            while self._n_bytes > self._most_bytes:
                oldest = self._recent.popitem(last=False)[1]
                self._n_bytes -= len(oldest)
                self._sound.pop(oldest[-_END_BYTES:], None)
        return sha256


KEPT = 1000
"""Latest answers whose pages and images can be requested."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A rollout on a question, and the record of it."""

    sample: Sample
    rollout: Rollout
    trajectory: Trajectory

    def as_json(self) -> dict[str, Any]:
        """The trajectory beside the answer, its rounds as datasets have them; images are at ``/images/SHA256``."""
        error, name = self.rollout.error, self.trajectory.trajectory_id
        rounds, thought = [to_row(turn) for turn in self.rollout.rounds], self.rollout.final_thought
        record = {"id": name, "page": f"/trajectories/{name}", "error": None if error is None else str(error)}
        return {**record, "rounds": rounds, "thought": thought}


async def check(settings: AgentSettings, workspace: Workspace) -> None:
    """Raise ``PolicyUnavailable`` where the model does not answer, ``TrainError`` for wrong settings."""
    async with Agent.open(settings, workspace):
        pass


class Agent:
    """A policy with its tools. ``open`` makes one."""

    def __init__(self, images: RecentImages, ledger: Ledger, evaluated: EvaluatedPolicy) -> None:
        self.images, self._evaluated = images, evaluated
        self._sandboxes = Sandboxes(images, ledger)
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: AgentSettings, workspace: Workspace) -> AsyncIterator["Agent"]:
        """Open the policy. Raises ``PolicyUnavailable`` for no response of the model, ``TrainError`` for settings."""
        images = RecentImages(workspace.images)
        evaluated = open_policy(settings.as_evaluation(), images)
        async with RecordedPolicy(evaluated.policy, workspace.ledger) as policy:
            await policy.check()
            yield cls(images, workspace.ledger, replace(evaluated, policy=policy))

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._evaluated.policy.identity.model

    async def answer(self, sample: Sample, number: int, seed: int | None) -> Answer:
        """Give the ``number``-th answer to a question.

        Raises ``ServiceError``: invalid_request where the protocol cannot put the question, unreadable_image where it
        failed and an image does not decode, infrastructure_failed where the endpoint or the sandbox failed and the
        model is not to blame.
        """
        evaluated = self._evaluated if seed is None else replace(self._evaluated, seed=seed)
        question = Question(sample.source, sample)
        try:
            task = task_of(question, number, evaluated)
        except RowError as error:
            raise ServiceError("invalid_request", str(error)) from error
        try:
            rollout = await run_rollout(question, task, evaluated, self._sandboxes)
        except (PolicyUnavailable, SandboxUnavailable) as error:
            await asyncio.to_thread(self._require_sound, sample)
            raise ServiceError("infrastructure_failed", str(error)) from error
        if rollout.error is not None:
            await asyncio.to_thread(self._require_sound, sample)
            if rollout.error.reason in RETRYABLE:
                raise ServiceError("infrastructure_failed", str(rollout.error))
        answer = Answer(sample, rollout, trajectory_of(question, task, rollout, evaluated))
        self._answers[answer.trajectory.trajectory_id] = answer
        while len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        return answer

    def _require_sound(self, sample: Sample) -> None:
        """Decode images that were stored undecoded. Raises ``ServiceError`` (unreadable_image)."""
        try:
            for image in sample.images:
                probe(self.images.read(image))
        except RowError as error:
            raise ServiceError("unreadable_image", str(error)) from error

    def image(self, sha256: str) -> ImageRef:
        """Find an image of an answer that is kept. Raises ``ServiceError`` (unknown_session)."""
        for answer in self._answers.values():
            observed = (image for turn in answer.rollout.rounds for image in turn.observation.images)
            for image in chain(observed, answer.trajectory.images):
                if image.sha256 == sha256:
                    return image
        raise ServiceError("unknown_session", f"no image of that name in the last {KEPT} answers")

    async def page(self, name: str) -> str:
        """Render a trajectory as a page. Raises ``ServiceError`` (unknown_session) where it is not kept."""
        answer = self._answers.get(name)
        if answer is None:
            raise ServiceError("unknown_session", f"no trajectory of that name among the last {KEPT}")
        return await asyncio.to_thread(self._page, answer)

    def _page(self, answer: Answer) -> str:
        with tempfile.TemporaryDirectory() as folder:
            rows, page = Path(folder, "rows"), Path(folder, "page.html")
            rows.mkdir()
            write_trajectories(rows, [(answer.sample, answer.trajectory)], store=self.images)
            write_gallery(page, [rows], title=f"An answer of {self.name}", inline_bytes=1 << 40)
            return page.read_text(encoding="utf-8")
