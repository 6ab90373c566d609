"""Human annotation in the UI: the pool of images, the rounds' tables, and the sensor that keeps them going."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from annotation.campaign import Campaign
from annotation.connection import connect, find_task_url
from annotation.faults import AnnotationFault
from annotation.journal import Journal
from annotation.pool import POOL, materialize_pool
from annotation.pre_annotations import PRE_ANNOTATIONS, PreAnnotating, read_predictions
from annotation.quality import Quality, measure
from annotation.queues import read_verdicts
from annotation.recorded_campaign import RecordedCampaign
from annotation.recording import BUNDLED, read_recording
from annotation.report import figures, people_rows, plots, summary
from annotation.review import ROUND as REVIEW
from annotation.review import ReviewQueue
from annotation.stages import ACCEPTED, ORDER, REFUSED, AnnotationStages, to_sample
from annotation.sync import Sync
from assets.conservation import check_conservation, conservation_spec
from assets.previews import rejects_metadata, samples_examples, samples_preview, stage_metadata
from assets.progress import progress_log
from assets.resources import PolicyResource, WorkspaceResource
from pipelines.recipes import Recipe
from pipelines.records import Annotated, PoolImage
from pipelines.reviews import ASSET as REVIEWS_ASSET
from pipelines.reviews import acceptance, read_reviews
from pipelines.stages import Report
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

GROUP, JOB, RECORDED_JOB = "annotation", "annotation", "recorded_annotations"
EXPERT_REVIEWS = dg.AssetKey(list(REVIEWS_ASSET))
PULL_SECONDS = 60
BUNDLED_SETTINGS = {step: {"recording": "bundled"} for step in ("annotation_pool", "annotation_rounds")}
"""The steps' settings under which they make the tables of the bundled recording."""
_DESCRIPTIONS = {
    "annotations": "Records that people wrote: a question about something small, its answer, boxes and category.",
    "cross_checks": "Records that somebody else answered blind, then accepted or fixed.",
    "accepted_annotations": "Records that an expert accepted: prompts with answers, boxes and categories for RL.",
    "refused_submissions": "Submissions that do not count: forged, late, twice, against the rules; with their tasks.",
}


def _key(table: TableKey) -> dg.AssetKey:
    return dg.AssetKey(list(table.asset))


class AnnotationSettings(dg.Config):
    """Whose annotations are materialised."""

    recording: str = Field(
        default="",
        description="Empty: the campaign of this workspace. 'bundled': the export that comes with the toolkit, "
        "on images of the demo. Or the file that `darkroom annotate record` wrote.",
    )

    def recorded(self, workspace: Workspace) -> RecordedCampaign | None:
        """The recorded campaign; None for the workspace's own. Raises ``AnnotationFault``."""
        if not self.recording:
            return None
        path = BUNDLED if self.recording == "bundled" else Path(self.recording)
        return RecordedCampaign(workspace, read_recording(path))

    @property
    def origin(self) -> str:
        """What the asset's page says of it."""
        if not self.recording:
            return "campaign of this workspace"
        return "recorded export, bundled" if self.recording == "bundled" else f"recorded export, {self.recording}"


@dg.asset(
    key=_key(POOL),
    group_name=GROUP,
    kinds={"parquet"},
    owners=["team:data"],
    check_specs=[conservation_spec(_key(POOL))],
    description="Images that people write questions about: large, sound, no twins, in no benchmark.",
)
def annotation_pool(
    context: dg.AssetExecutionContext, config: AnnotationSettings, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """Round 0."""
    with workspace.open() as opened:
        recorded = config.recorded(opened)
        if recorded is not None:
            report = recorded.materialize_pool()
        else:
            campaign = Campaign.load(opened.annotation)
            report = materialize_pool(opened, campaign, opened.annotation, progress=progress_log(context))
        return dg.MaterializeResult(
            metadata={
                **stage_metadata(report, path=str(opened.tables.path(report.key))),
                **rejects_metadata(opened.tables.read_rejects(report.key)),
                **_origin(config, recorded),
            },
            check_results=[check_conservation(opened.tables, report.key, n_in=report.n_in)],
        )


def _origin(config: AnnotationSettings, recorded: RecordedCampaign | None) -> dict[str, Any]:
    note = {"note": recorded.recording.note} if recorded is not None and recorded.recording.note else {}
    return {"annotations": config.origin, **note}


@dg.asset(
    key=_key(PRE_ANNOTATIONS),
    deps=[_key(POOL)],
    group_name=GROUP,
    kinds={"llm", "parquet"},
    owners=["team:data"],
    check_specs=[conservation_spec(_key(PRE_ANNOTATIONS))],
    description="Records that a policy wrote for people to correct; optional, and marked as such on their pages.",
)
def pre_annotations(
    context: dg.AssetExecutionContext, workspace: WorkspaceResource, policy: PolicyResource
) -> dg.MaterializeResult:
    """What people find filled in in the first round."""
    with workspace.open() as opened:
        campaign = Campaign.load(opened.annotation)
        annotating = PreAnnotating(opened, campaign, progress_log(context))
        report = annotating.materialize(policy.for_pre_annotating(opened))
        return dg.MaterializeResult(
            metadata={
                **stage_metadata(report, path=str(opened.tables.path(PRE_ANNOTATIONS))),
                **rejects_metadata(opened.tables.read_rejects(PRE_ANNOTATIONS)),
            },
            check_results=[check_conservation(opened.tables, PRE_ANNOTATIONS, n_in=opened.tables.n_rows(POOL))],
        )


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            _key(table),
            deps=[_key(before)],
            group_name=GROUP,
            kinds={"parquet"},
            owners=["team:data"],
            description=_DESCRIPTIONS[table.asset[0]],
        )
        for table, before in zip((*ORDER, REFUSED), (POOL, *ORDER[:-1], POOL), strict=True)
    ],
    check_specs=[conservation_spec(_key(table)) for table in ORDER],
    name="annotation_rounds",
)
def annotation_rounds(
    context: dg.AssetExecutionContext, config: AnnotationSettings, workspace: WorkspaceResource
) -> Iterator[dg.MaterializeResult]:
    """What people submitted, from one reading of the journal."""
    with workspace.open() as opened:
        recorded = config.recorded(opened)
        with _stages(context, opened, recorded) as stages:
            reading = stages.read()
            reports = stages.materialize(reading)
            states = [kept.state for kept in reading.kept]
            journal = stages.journal
            quality = measure(states, hits=journal.hits(), people=journal.people().values())
            context.log.info(summary(quality))
            n_in = opened.tables.n_rows(stages.key(POOL))
            for table in ORDER:
                yield _finished(stages, reports[table], n_in, quality, _origin(config, recorded))
                n_in = reports[table].n_out
            yield dg.MaterializeResult(
                asset_key=_key(REFUSED),
                metadata={
                    **stage_metadata(reports[REFUSED], path=str(opened.tables.path(stages.key(REFUSED)))),
                    **_origin(config, recorded),
                },
            )


@contextmanager
def _stages(
    context: dg.AssetExecutionContext, workspace: Workspace, recorded: RecordedCampaign | None
) -> Iterator[AnnotationStages]:
    """Those of the recording, once it is taken in, or of the workspace's own campaign."""
    if recorded is not None:
        with recorded.stages(say=context.log.info) as stages:
            yield stages
        return
    with Journal(workspace.annotation) as journal:
        yield AnnotationStages(workspace, Campaign.load(workspace.annotation), journal, find_task_url(workspace))


def _finished(
    stages: AnnotationStages, report: Report, n_in: int, quality: Quality, origin: dict[str, Any]
) -> dg.MaterializeResult:
    tables, images, key = stages.workspace.tables, stages.workspace.images, report.key
    samples = [to_sample(row, campaign=stages.campaign.name) for row in tables.read(key, Annotated)]
    metadata: dict[str, Any] = {
        **stage_metadata(report, path=str(tables.path(key))),
        **rejects_metadata(tables.read_rejects(key)),
        **origin,
        **samples_examples(samples, images),
        "preview": samples_preview(samples, images),
    }
    if key.asset == ACCEPTED.asset:
        metadata |= _quality_metadata(quality)
    return dg.MaterializeResult(
        asset_key=_key(key), metadata=metadata, check_results=[check_conservation(tables, key, n_in=n_in)]
    )


def _quality_metadata(quality: Quality) -> dict[str, Any]:
    metadata: dict[str, Any] = {"quality": dg.MetadataValue.md(summary(quality)), **figures(quality)}
    if rows := people_rows(quality):
        metadata["people"] = dg.MetadataValue.table([dg.TableRecord(row) for row in rows])
    for name, png in plots(quality).items():
        data = base64.b64encode(png).decode()
        metadata[f"plot_{name}"] = dg.MetadataValue.md(f"![{name}](data:image/png;base64,{data})")
    return metadata


class ReviewSettings(dg.Config):
    """What can be set for one run of the expert review."""

    n_rows: int = Field(default=20, ge=0, description="Trajectories of every family that experts look at.")


def expert_reviews_asset(recipes: Sequence[Recipe]) -> dg.AssetsDefinition:
    """The asset that hands trajectories out to experts and takes their verdicts in."""

    @dg.asset(
        key=EXPERT_REVIEWS,
        deps=[dg.AssetKey([recipe.family, "trajectories"]) for recipe in recipes],
        group_name="datasets",  # between the families and what ships
        kinds={"parquet"},
        owners=["team:data"],
        description="Experts' verdicts on a seeded sample of each family. What they reject does not ship.",
    )
    def expert_reviews(
        context: dg.AssetExecutionContext, config: ReviewSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        with workspace.open() as opened, Journal(opened.annotation) as journal:
            queue = ReviewQueue(opened, Campaign.load(opened.annotation), journal)
            with connect(opened) as studio:
                synced = queue.sync(studio, recipes, n_rows=config.n_rows)
            reports = queue.materialize(recipes)
            context.log.info("%d came in, %s went out", synced.n_revisions, synced.imported)
            waiting = read_verdicts(journal, REVIEW).n_waiting
            shares = {family: acceptance(read_reviews(opened.tables, family)) for family in reports}
        rows = [
            dg.TableRecord({"family": family, "reviewed": share.of, "accepted": share.n, "share": str(share)})
            for family, share in shares.items()
        ]
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": sum(report.n_out for report in reports.values()),
                "waiting": waiting,
                "acceptance": dg.MetadataValue.table(rows) if rows else dg.MetadataValue.text("no family"),
            }
        )

    return expert_reviews


@dg.sensor(
    name="annotation_sync",
    job_name=JOB,
    minimum_interval_seconds=PULL_SECONDS,
    description="Takes in what people submitted, hands out what can be done next, and refreshes the tables.",
)
def annotation_sync(context: dg.SensorEvaluationContext, workspace: WorkspaceResource) -> dg.RunRequest | dg.SkipReason:
    """A tick that fails says why in the UI; the next one goes on from there."""
    with workspace.open() as opened:
        if not opened.tables.exists(POOL):
            return dg.SkipReason("there is no pool yet: materialise annotation_pool")
        try:
            studio = connect(opened)
        except AnnotationFault as fault:
            return dg.SkipReason(str(fault))
        with Journal(opened.annotation) as journal, studio:
            pool = opened.tables.read(POOL, PoolImage)
            shown = read_predictions(opened, pool)
            Sync(journal, studio, Campaign.load(opened.annotation), shown, say=context.log.info).run(pool)
            fingerprint = journal.fingerprint
    if fingerprint == context.cursor:
        return dg.SkipReason("nothing came in")
    context.update_cursor(fingerprint)
    return dg.RunRequest(run_key=fingerprint)


def annotation_job() -> Any:
    """The tables of the rounds."""
    return dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.assets(*(_key(table) for table in (*ORDER, REFUSED))),
        description="The rounds' tables, as the journal has them now.",
    )


def recorded_annotations_job() -> Any:
    """The pool and the tables of the rounds from the bundled recording: for where no server runs."""
    return dg.define_asset_job(
        RECORDED_JOB,
        selection=dg.AssetSelection.assets(*(_key(table) for table in (POOL, *ORDER, REFUSED))),
        config={"ops": {step: {"config": settings} for step, settings in BUNDLED_SETTINGS.items()}},
        description="Annotated rows without a server: the recorded export that comes with the toolkit.",
    )
