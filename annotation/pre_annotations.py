"""Pre-annotations: records by a policy, which people see as predictions and correct.

Each keeps the rules that people's records must keep; one that does not is a typed reject, and its image goes out
without one. Every call is on the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from annotation.campaign import Campaign
from annotation.choices import CATEGORIES, names
from annotation.code import annotation_digest
from annotation.faults import AnnotationFault
from annotation.pool import POOL, reject_item
from annotation.submissions import Fields, Frame, read
from annotation.tasks import results
from pipelines.digest import digest, seed_from
from pipelines.geometry import Box, box_from_frame
from pipelines.messages import Picture, message
from pipelines.policies import Policy, PolicyFault, RecordedPolicy, Turn
from pipelines.policies.base import Completion
from pipelines.prompts import Prompt, load_prompt
from pipelines.records import ImageRef, PoolImage, PreAnnotation, Reject, Sample, Truth, TruthBox, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.stages import Outcome, Progress, Report, map_rows, run_stage
from pipelines.structured import json_objects
from pipelines.tables import TableKey
from pipelines.tasks import Task
from pipelines.workspace import Workspace

PRE_ANNOTATIONS = TableKey(("pre_annotations",), "all")
PROMPT = Path(__file__).parent / "prompts" / "pre_annotate.md"
FRAMES = {
    "pixels": "pixels of the image as you see it",
    "thousandths": "thousandths of the image's width and height, whole numbers from 0 to 1000",
}


class Written(BaseModel):
    """What the policy must answer, also as the JSON schema that the endpoint is sent."""

    question: str
    answer: str
    category: str
    count: int | None = None
    boxes: list[list[float]]


@dataclass(frozen=True, slots=True)
class PreAnnotating:
    """One campaign's pre-annotations by one policy."""

    workspace: Workspace
    campaign: Campaign
    progress: Progress | None = None

    def materialize(self, policy: Policy) -> Report:
        """A record for every image of the pool.

        Raises ``TableMissing`` without a pool, ``AnnotationFault`` when the campaign wants none, ``PolicyUnavailable``.
        """
        if self.campaign.pre_annotate == "no":
            raise AnnotationFault(
                "the campaign asks for no pre-annotations: set pre_annotate to pixels or thousandths in it"
            )
        tables, prompt = self.workspace.tables, load_prompt(PROMPT)
        rules = self.campaign.model_dump(include={"max_share", "pre_annotate"})
        identity = policy.identity.as_json()
        inputs = digest([tables.fingerprint(POOL), identity, prompt.digest, rules, annotation_digest()])
        return run_stage(
            tables,
            PRE_ANNOTATIONS,
            PreAnnotation,
            inputs=inputs,
            perform=lambda: asyncio.run(self._annotate(policy, prompt)),
        )

    async def _annotate(self, policy: Policy, prompt: Prompt) -> Outcome[PreAnnotation]:
        pool = self.workspace.tables.read(POOL, PoolImage)
        async with RecordedPolicy(policy, self.workspace.ledger) as recorded:
            await recorded.check()
            made = await map_rows(
                pool,
                lambda item: self._one(recorded, prompt, item),
                concurrency=policy.concurrency,
                progress=self.progress,
            )
            performed = recorded.n_written
        rows = [one for one in made if isinstance(one, PreAnnotation)]
        rejects = [one for one in made if isinstance(one, Reject)]
        usage = sum((row.usage for row in rows), Usage())
        return Outcome(rows, rejects, len(pool), usage=usage, performed=performed)

    async def _one(self, policy: RecordedPolicy, prompt: Prompt, item: PoolImage) -> PreAnnotation | Reject:
        try:
            completion = await self._ask(policy, prompt, item)
            fields = read_pre_annotation(completion, item.image, self.campaign)
        except RowFault as fault:
            return reject_item(item, fault, stage=PRE_ANNOTATIONS.asset[0])
        return PreAnnotation(
            sha256=item.image.sha256,
            question=fields.question,
            answer=fields.answer,
            category=fields.category,
            count=fields.count,
            boxes=tuple(TruthBox("target", *box) for box in fields.boxes),
            model=policy.identity.model,
            usage=completion.usage,
        )

    async def _ask(self, policy: RecordedPolicy, prompt: Prompt, item: PoolImage) -> Completion:
        system, user = prompt.render(
            width=item.image.width,
            height=item.image.height,
            max_share=f"{self.campaign.max_share:.0%}",
            categories=", ".join(names(CATEGORIES)),
            frame=FRAMES[self.campaign.pre_annotate],
        )
        messages = (message("system", system), message("user", Picture(item.image), user))
        sample = Sample(
            item.image.sha256, item.source, item.source_row, item.license, (item.image,), "", (), "", Truth(), ""
        )
        seed = seed_from("pre_annotate", item.image.sha256)
        task = Task(item.image.sha256, "pre_annotate", sample, (), {}, messages, seed)
        try:
            return await policy.write(Turn(messages, (), seed, task, schema=Written.model_json_schema()))
        except PolicyFault as fault:
            raise RowFault(Reason.POLICY_FAILED, str(fault)) from fault


def read_pre_annotation(completion: Completion, image: ImageRef, campaign: Campaign) -> Fields:
    """The record that a policy wrote, in pixels of the stored image. Raises ``RowFault``."""
    written = _written(completion)
    frame = (1000, 1000)
    if campaign.pre_annotate == "pixels":
        shown = completion.frames[0] if completion.frames else None
        frame = (shown.width, shown.height) if shown else (image.width, image.height)
    try:
        boxes = tuple(_box(corners, frame, image) for corners in written.boxes)
        fields = Fields(written.question, written.answer, written.category, written.count, boxes)
        raw = {"id": 0, "completed_by": 0, "result": results(fields, image)}
    except ValueError as fault:
        raise RowFault(Reason.BREAKS_RULES, str(fault)) from fault
    return read(raw, round="annotate", frame=Frame(image.width, image.height, campaign.max_share)).fields


def _written(completion: Completion) -> Written:
    """The last JSON object that is a record; models reason first, and put fences around it."""
    if not completion.finished:
        raise RowFault(Reason.TRUNCATED_TURN, "the token limit cut the record off")
    for candidate in reversed(list(json_objects(completion.text))):
        try:
            return Written.model_validate(candidate)
        except ValidationError:
            continue
    raise RowFault(Reason.MALFORMED_TURN, f"no record in what the policy wrote: {completion.text[:300]!r}")


def _box(corners: list[float], frame: tuple[int, int], image: ImageRef) -> Box:
    return box_from_frame(corners, frame, image.width, image.height)


def predictions(rows: list[PreAnnotation], pool: list[PoolImage]) -> dict[str, Mapping[str, Any]]:
    """Label Studio's predictions, by the image's sha256; the page shows the model's name beside them."""
    images = {item.image.sha256: item.image for item in pool}
    return {
        row.sha256: {
            "model_version": f"pre-annotation by {row.model}",
            "result": results(
                Fields(row.question, row.answer, row.category, row.count, tuple(box.box for box in row.boxes)),
                images[row.sha256],
            ),
        }
        for row in rows
        if row.sha256 in images
    }


def read_predictions(workspace: Workspace, pool: list[PoolImage]) -> dict[str, Mapping[str, Any]]:
    """The pre-annotations that lie in the workspace, if any."""
    tables = workspace.tables
    return predictions(tables.read(PRE_ANNOTATIONS, PreAnnotation), pool) if tables.exists(PRE_ANNOTATIONS) else {}
