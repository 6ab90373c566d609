"""Pre-annotations: records by a policy, which annotators see as predictions and correct. A record that breaks the rules
of submissions is a typed reject, and its image goes out without one. Every call is on the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.forms import CATEGORIES, names
from darkroom.annotation.rounds.campaign import ANNOTATION_CODE, Campaign, Terms
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.next_tasks import results
from darkroom.annotation.rounds.submissions import RecordFields, read_submission
from darkroom.pipelines.generation.drafting import CONVERSATION_CODE
from darkroom.pipelines.generation.stage import Shard, Stage
from darkroom.pipelines.models.messages import ImagePart, message
from darkroom.pipelines.models.parsing import json_objects
from darkroom.pipelines.models.policies import CompletionRequest, Policy, PolicyError
from darkroom.pipelines.models.policies.policy import Completion
from darkroom.pipelines.models.prompts import load_prompt
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import PoolImage, PreAnnotation
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import box_from_frame
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.storage.stage_runs import Progress, StageReport
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import raised_as

PRE_ANNOTATIONS = TableKey(("pre_annotations",), "all")
PROMPT = Path(__file__).with_name("pre_annotate.md")
FRAMES = {
    "pixels": "pixels of the image as you see it",
    "thousandths": "thousandths of the image's width and height, whole numbers from 0 to 1000",
}


class PolicyRecord(BaseModel):
    """The policy's answer; also the JSON schema sent to the endpoint."""

    question: str
    answer: str
    category: str
    count: int | None = None
    boxes: list[list[float]]


def materialize_pre_annotations(
    workspace: Workspace, campaign: Campaign, policy: Policy, *, progress: Progress | None = None
) -> StageReport:
    """Raises ``TableMissing``, ``AnnotationError`` where they are disabled, ``PolicyUnavailable``."""
    if campaign.pre_annotate == "no":
        mend = "set pre_annotate to pixels or thousandths in campaign.yaml"
        raise AnnotationError(f"pre-annotations are disabled: {mend}")
    shard = Shard(workspace, "all", progress and (lambda stand: progress(stand.n_done, stand.n_rows)))
    return shard.materialize(PreAnnotations(campaign=campaign, policy=policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreAnnotations(Stage[PoolImage, PoolImage, PreAnnotation]):
    """A record for every image of the pool, written by ``policy``."""

    campaign: Campaign
    policy: Policy

    asset: ClassVar[str] = PRE_ANNOTATIONS.asset[0]
    kind: ClassVar[type[PreAnnotation]] = PreAnnotation
    code: ClassVar[Sequence[str]] = (*ANNOTATION_CODE, *CONVERSATION_CODE)
    reads: ClassVar[Sequence[str]] = POOL.asset
    roles: ClassVar[Sequence[str]] = ("policy",)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"prompt": load_prompt(PROMPT).digest, **self.campaign.model_dump(include={"max_share", "pre_annotate"})}

    def rows(self, shard: Shard) -> Sequence[tuple[PoolImage, PoolImage]]:
        return [(image, image) for image in shard.workspace.tables.read(POOL, PoolImage)]

    async def measure(self, item: PoolImage, _row: PoolImage) -> PreAnnotation:
        completion = await self._complete(item)
        fields = read_pre_annotation(completion, item, self.campaign)
        model, usage = self.policy.identity.model, completion.usage
        return PreAnnotation(sha256=item.image.sha256, **fields.columns, model=model, usage=usage)

    async def _complete(self, item: PoolImage) -> Completion:
        system, user = load_prompt(PROMPT).render(
            width=item.image.width,
            height=item.image.height,
            max_share=f"{self.campaign.max_share:.0%}",
            categories=", ".join(names(CATEGORIES)),
            frame=FRAMES[self.campaign.pre_annotate],
        )
        messages = (message("system", system), message("user", ImagePart(item.image), user))
        name, origin = item.image.sha256, {"source": item.source, "source_row": item.source_row}
        sample = bare_sample(name, "", (item.image,), **origin, license=item.license)
        seed = seed_from("pre_annotate", name)
        task = Task(name, "pre_annotate", sample, images=(), hint={}, opening=messages, seed=seed)
        with raised_as(lambda error: RowError(Reason.POLICY_FAILED, str(error)), PolicyError):
            schema = PolicyRecord.model_json_schema()
            return await self.policy.write(CompletionRequest(messages, (), seed, task, schema=schema))


def read_pre_annotation(completion: Completion, item: PoolImage, campaign: Campaign) -> RecordFields:
    """The policy's record, in pixels of the stored image. Raises ``RowError``."""
    record, image = _parse(completion), item.image
    frame = (1000, 1000)
    if campaign.pre_annotate == "pixels":
        sent = completion.frames[0] if completion.frames else image
        frame = (sent.width, sent.height)
    with raised_as(lambda error: RowError(Reason.BREAKS_RULES, str(error)), ValueError):
        boxes = tuple(box_from_frame(corners, frame, image.width, image.height) for corners in record.boxes)
        fields = RecordFields(record.question, record.answer, record.category, record.count, boxes)
        raw = {"id": 0, "completed_by": 0, "result": results(fields, item)}
    gate = Terms(campaign.max_share, campaign.max_rework).gate("annotate", (image.width, image.height))
    return read_submission(raw, gate).fields


def _parse(completion: Completion) -> PolicyRecord:
    """The last JSON object that is a record; models reason first and add code fences."""
    if not completion.finished:
        raise RowError(Reason.TRUNCATED_TURN, "the token limit cut the record off")
    for candidate in reversed(list(json_objects(completion.text))):
        try:
            return PolicyRecord.model_validate(candidate)
        except ValidationError:
            continue
    raise RowError(Reason.MALFORMED_TURN, f"no record in what the policy wrote: {completion.text[:300]!r}")


def read_predictions(workspace: Workspace, pool: Iterable[PoolImage]) -> dict[str, Mapping[str, Any]]:
    """The workspace's pre-annotations, if any, as Label Studio's predictions by sha256; pages show the model's name."""
    tables, items = workspace.tables, {item.image.sha256: item for item in pool}
    rows = tables.read(PRE_ANNOTATIONS, PreAnnotation) if tables.exists(PRE_ANNOTATIONS) else []
    predictions: dict[str, Mapping[str, Any]] = {}
    for row in (row for row in rows if row.sha256 in items):
        fields = RecordFields(row.question, row.answer, row.category, row.count, tuple(box.box for box in row.boxes))
        result = results(fields, items[row.sha256])
        predictions[row.sha256] = {"model_version": f"pre-annotation by {row.model}", "result": result}
    return predictions
