"""Human annotation in the UI: the image pool, the tables of the rounds, and the sensor that syncs with Label Studio."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import dagster as dg

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.server import connect, note_act
from darkroom.annotation.quality.metrics import Quality, measure
from darkroom.annotation.quality.report import figures, people_rows, plots, summary
from darkroom.annotation.recordings.campaign_import import RecordedCampaign
from darkroom.annotation.recordings.format import BUNDLED, read_recording
from darkroom.annotation.rounds.accepted_source import to_sample
from darkroom.annotation.rounds.campaign import Campaign, require_experts
from darkroom.annotation.rounds.image_pool import POOL, materialize_pool
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.practice import exchange_practice
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS, materialize_pre_annotations, read_predictions
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import ACCEPTED, ORDER, REFUSED, AnnotationStages
from darkroom.assets.graph.resources import LaunchpadSettings, PolicyResource, WorkspaceResource
from darkroom.assets.graph.stage_assets import (
    OWNERS,
    SPECS,
    Decorator,
    conservation_spec,
    progress_log,
    stage_result,
    waiting_check,
)
from darkroom.assets.pages.declared_metadata import table_columns
from darkroom.assets.pages.metadata import plot, samples_pages, stage_metadata
from darkroom.pipelines.records import Annotated, PoolImage, PreAnnotation, Reject
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

GROUP, JOB = "annotation", "annotation"
PULL_SECONDS = 60


def _key(table: TableKey) -> dg.AssetKey:
    return dg.AssetKey(list(table.asset))


_RECORDS = {POOL: PoolImage, PRE_ANNOTATIONS: PreAnnotation, **dict.fromkeys(ORDER, Annotated), REFUSED: Reject}
"""The records of the tables."""


def _shown(table: TableKey, *deps: TableKey) -> dict[str, Any]:
    spec = SPECS[table.asset[0]]
    declared = {"description": spec.description, "kinds": set(spec.kinds), "deps": [_key(before) for before in deps]}
    columns = table_columns(_RECORDS[table])
    return {"key": _key(table), "group_name": GROUP, "owners": OWNERS, "metadata": columns, **declared}


def _stage(table: TableKey, *deps: TableKey) -> Decorator:
    checks = [conservation_spec(_key(table))]
    return cast(Decorator, dg.asset(**_shown(table, *deps), check_specs=checks, output_required=False))


class AnnotationSettings(LaunchpadSettings):
    """The annotations that are materialised."""

    recording: str = ""
    """Empty: the campaign of this workspace. 'bundled': the recording that comes with the toolkit, on images of the
    demo. Or a file written by `darkroom annotate export`."""

    def recorded(self, workspace: Workspace) -> RecordedCampaign | None:
        """The recorded campaign; None for the workspace's own. Raises ``AnnotationError``."""
        if not self.recording:
            return None
        path = BUNDLED if self.recording == "bundled" else Path(self.recording)
        return RecordedCampaign(workspace, read_recording(path))

    def origin(self, recorded: RecordedCampaign | None) -> dict[str, Any]:
        if recorded is None:
            return {"annotations": "campaign of this workspace"}
        note = {"note": recorded.recording.note} if recorded.recording.note else {}
        return {"annotations": f"recorded export, {self.recording}", **note}


@_stage(POOL)
def annotation_pool(
    context: dg.AssetExecutionContext, config: AnnotationSettings, workspace: WorkspaceResource
) -> dg.MaterializeResult:
    """Selects the images of the campaign or of the recording."""
    with workspace.open() as opened:
        recorded = config.recorded(opened)
        if recorded is not None:
            report = recorded.materialize_pool()
        else:
            campaign = Campaign.load(opened.annotation)
            report = materialize_pool(opened, campaign, opened.annotation, progress=progress_log(context))
        return stage_result(opened.tables, report, n_in=report.n_in, details=config.origin(recorded))


@_stage(PRE_ANNOTATIONS, POOL)
def pre_annotations(
    context: dg.AssetExecutionContext, workspace: WorkspaceResource, policy: PolicyResource
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    """Writes the drafts of the first round."""
    with workspace.open() as opened:
        campaign = Campaign.load(opened.annotation)
        annotator = policy.for_pre_annotating(opened)
        try:
            report = materialize_pre_annotations(opened, campaign, annotator, progress=progress_log(context))
        except AnswersPending as pending:
            yield waiting_check(_key(PRE_ANNOTATIONS), pending)
        else:
            yield stage_result(opened.tables, report, n_in=opened.tables.n_rows(POOL))


@dg.multi_asset(
    specs=[
        dg.AssetSpec(**_shown(table, before))
        for table, before in zip((*ORDER, REFUSED), (POOL, *ORDER[:-1], POOL), strict=True)
    ],
    check_specs=[conservation_spec(_key(table)) for table in ORDER],
    name="annotation_rounds",
)
def annotation_rounds(
    context: dg.AssetExecutionContext, config: AnnotationSettings, workspace: WorkspaceResource
) -> Iterator[dg.MaterializeResult]:
    """The submissions, from one reading of the journal."""
    with workspace.open() as opened:
        recorded = config.recorded(opened)
        # a recording is imported first
        stages_of = recorded.stages(say=context.log.info) if recorded else AnnotationStages.of_workspace(opened)
        with stages_of as stages:
            reading = stages.read()
            reports = stages.materialize(reading)
            states, journal = [record.state for record in reading.records], stages.journal
            quality = measure(states, blocked=journal.blocked_submissions(), people=journal.people().values())
            context.log.info(summary(quality))
            n_in = opened.tables.n_rows(stages.key(POOL))
            for table in ORDER:
                yield _finished(stages, reports[table], n_in, quality, config.origin(recorded))
                n_in = reports[table].n_out
            counted = stage_metadata(reports[REFUSED], path=str(opened.tables.path(stages.key(REFUSED))))
            yield dg.MaterializeResult(asset_key=_key(REFUSED), metadata={**counted, **config.origin(recorded)})


def _finished(
    stages: AnnotationStages, report: StageReport, n_in: int, quality: Quality, origin: dict[str, Any]
) -> dg.MaterializeResult:
    tables, images, key = stages.workspace.tables, stages.workspace.images, report.key
    samples = [to_sample(row, campaign=stages.campaign.name) for row in tables.read(key, Annotated)]
    details = {**origin, **samples_pages(samples, images)}
    if key.asset == ACCEPTED.asset:
        details |= {"quality": dg.MetadataValue.md(summary(quality)), **figures(quality)}
        if rows := people_rows(quality):
            details["people"] = dg.MetadataValue.table([dg.TableRecord(row) for row in rows])
        details |= {f"plot_{name}": plot(png, name) for name, png in plots(quality).items()}
    return stage_result(tables, report, n_in=n_in, details=details)


@dg.sensor(
    name="annotation_sync",
    job_name=JOB,
    minimum_interval_seconds=PULL_SECONDS,
    description="Imports submissions, assigns the next tasks, and refreshes the tables.",
)
def annotation_sync(context: dg.SensorEvaluationContext, workspace: WorkspaceResource) -> dg.RunRequest | dg.SkipReason:
    """A failed tick shows its reason in the UI; the next one resumes."""
    with workspace.open() as opened:
        if not opened.tables.exists(POOL):
            return dg.SkipReason("there is no pool yet: materialise annotation_pool")
        try:
            studio = connect(opened)
        except AnnotationError as error:
            return dg.SkipReason(str(error))
        with Journal(opened.annotation) as journal, studio:
            pool, campaign = opened.tables.read(POOL, PoolImage), Campaign.load(opened.annotation)
            if not journal.rounds():
                require_experts(campaign, studio.accounts())
            exchange_practice(opened, campaign, journal, studio)
            drafts, note = read_predictions(opened, pool), partial(note_act, opened)
            Sync(journal, studio, campaign, drafts, say=context.log.info, note=note).run(pool)
            fingerprint = journal.fingerprint
    if fingerprint == context.cursor:
        return dg.SkipReason("no new submissions")
    context.update_cursor(fingerprint)
    return dg.RunRequest(run_key=fingerprint)
