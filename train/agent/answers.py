"""The agent: a question in, rollouts out. Turns and executions are on the workspace's ledger, and paid for once."""

import asyncio
import io
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from PIL.PngImagePlugin import PngImageFile

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.models.policies import PolicyUnavailable, RecordedPolicy
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, to_row
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

_BIT_DEPTH = 24
"""The byte of a PNG that has the bits of a channel."""
_CONVERTED = (b"acTL", b"eXIf", b"iTXt", b"tEXt", b"tRNS", b"zTXt")
"""Names of chunks that may animate a PNG, turn it or make it transparent."""


def plain_png(data: bytes) -> PngImageFile | None:
    """Open a PNG that needs no conversion, each of whose chunks has the right CRC; None for any other file. Pixels may
    still not decode where the writer of the file was wrong."""
    try:
        image: Any = PngImageFile(io.BytesIO(data))
        start_of_pixels = image.tile[0][2]
        image.fp.seek(start_of_pixels - 8)
        names = image.png.verify()  # as the image's own method does, which keeps them to itself
    except Exception:  # noqa: BLE001  # whatever a broken file makes Pillow raise: the store names the defect
        return None
    is_plain = image.mode in ("L", "RGB") and data[_BIT_DEPTH] == 8 and set(names) == {b"IDAT"}
    return image if is_plain and not any(name in data[:start_of_pixels] for name in _CONVERTED) else None


class AgentImages(ImageStore):
    """An image store that does not decode plain PNGs: sandbox and model do so anyway."""

    def ingest(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageRef:
        image = plain_png(data)
        if image is None or image.width * image.height > max_pixels:
            return super().ingest(data, max_pixels=max_pixels)
        return ImageRef(self._put(data), image.width, image.height, image.mode, "PNG")


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

    def __init__(self, images: AgentImages, ledger: Ledger, evaluated: EvaluatedPolicy) -> None:
        self.images, self._evaluated = images, evaluated
        self._sandboxes = Sandboxes(images, ledger)
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: AgentSettings, workspace: Workspace) -> AsyncIterator["Agent"]:
        """Open the policy. Raises ``PolicyUnavailable`` for no response of the model, ``TrainError`` for settings."""
        images = AgentImages(workspace.images.url, workspace.images._cache)
        evaluated = open_policy(settings.as_evaluation(), images)
        async with RecordedPolicy(evaluated.policy, workspace.ledger) as policy:
            await policy.check()
            yield cls(images, workspace.ledger, replace(evaluated, policy=policy))

    @property
    def name(self) -> str:
        return self._evaluated.policy.identity.model

    async def answer(self, sample: Sample, number: int, seed: int | None) -> Answer:
        """Give the ``number``-th answer to a question. Raises ``ServiceError``: invalid_request where the protocol
        cannot put it, unreadable_image where an image does not decode, infrastructure_failed where the endpoint or the
        sandbox failed."""
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
