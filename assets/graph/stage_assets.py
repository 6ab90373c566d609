"""Stage assets share partitions by shard, a blocking conservation check, counts and rejects, and progress lines."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import yaml
from sqlalchemy.exc import OperationalError

from darkroom.assets.clusters.placement import RUNS_ON_TAG
from darkroom.assets.graph.partitions import WHEN_ADDED
from darkroom.assets.graph.resources import PolicyResource
from darkroom.assets.pages.declared_metadata import code_references, table_columns
from darkroom.assets.pages.metadata import rejects_metadata, stage_metadata
from darkroom.assets.terminal import progress_sink
from darkroom.pipelines.records import Reject
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.stage_runs import Pace, StageProgress, StageReport
from darkroom.pipelines.storage.storage_errors import AnswersPending, StoreAway
from darkroom.pipelines.storage.tables import TableKey, Tables, check_fingerprint
from darkroom.pipelines.storage.workspace import Workspace

OWNERS = ["team:data"]
_DATA_VERSION_TAG = "dagster/data_version"
_PRIORITY_TAG = "dagster/priority"
ROWS_CONSERVED = "rows_conserved"
_PENDING = "rows_pending"
_N_LOG_LINES = 10
_LOG_SECONDS = 30.0
_LEAST_SECONDS = 2.0
"""Between two lines of the log: each is a transaction of Dagster's event log, for which the rows wait."""
_AWAY = (StoreAway, LedgerUnavailable, OperationalError)
_N_REPEATS = 20
_REPEAT_SECONDS = 15.0
"""Of a stage whose database or store is away: five minutes and what it takes to notice."""
_N_LATEST = 3
"""Materialisations of a shard among which this run's own is looked for: others may have come since."""
Decorator = Callable[[Callable[..., Any]], dg.AssetsDefinition]


class StageInputs(NamedTuple):
    """Inputs that decide a stage's rows on one shard (``demo-0000``)."""

    workspace: Workspace
    partition: str
    policies: Callable[[str], PolicyResource]
    """The resource of a role that the asset declares."""
    settings: Any
    """The launchpad's; None where the asset has none."""
    context: dg.AssetExecutionContext | None = None
    """The run's; None where no run is launched to look at a stage."""

    @property
    def progress(self) -> Callable[[StageProgress], None] | None:
        """Progress lines of the run, whose pace is counted from here on."""
        return progress_lines(self.context) if self.context is not None else None


class StageSpec(NamedTuple):
    """A stage as the UI shows it, from ``stages.yaml``."""

    description: str
    kinds: Sequence[str] = ("parquet",)
    roles: Sequence[str] = ()
    """The policies that it may call."""
    deps: Sequence[str] = ("samples",)
    pool: str = ""
    """What it shares with other runs, besides the endpoints of its roles."""
    about: str = ""
    """Of its settings."""
    settings: Mapping[str, Mapping[str, Any]] = {}
    """Fields of the stage for the launchpad: description and bounds."""


SPECS = {
    name: StageSpec(**shown)
    for name, shown in yaml.safe_load(Path(__file__).with_name("stages.yaml").read_text(encoding="utf-8")).items()
}


def stage_asset(
    key: dg.AssetKey,
    spec: StageSpec,
    perform: Callable[[StageInputs], dg.MaterializeResult],
    *,
    record: type[Any],
    deps: Sequence[dg.AssetKey],
    group: str,
    partitions: dg.PartitionsDefinition,
    settings: type[dg.Config] | None = None,
    code_version: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    priority: int = 0,
) -> dg.AssetsDefinition:
    """The asset of one stage, whose rows are ``record``; ``perform`` materialises it with the launchpad's ``settings``.
    Its last name is the tag ``darkroom/stage``, by which all families' runs or rejects are selected. ``priority``: in a
    run, higher for later stages: a family is finished before the next one begins."""
    # dagster takes the schema of a Config class here, its annotation lists other types only
    schema: Any = settings.to_config_schema() if settings else None

    @dg.asset(
        key=key,
        deps=deps,
        group_name=group,
        partitions_def=partitions,
        kinds=set(spec.kinds),
        owners=OWNERS,
        check_specs=[conservation_spec(key)],
        code_version=code_version,
        description=spec.description,
        tags={"darkroom/stage": key.path[-1]},
        metadata={**table_columns(record), **code_references(perform), **(metadata or {})},
        automation_condition=WHEN_ADDED if deps else None,
        config_schema=schema,
        required_resource_keys={"workspace", *spec.roles},
        output_required=False,
        op_tags={_PRIORITY_TAG: str(priority)},
        pool=spec.pool or ("endpoints" if spec.roles else None),
    )
    def stage(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
        chosen = settings(**context.op_execution_context.op_config) if settings else None
        result: dg.MaterializeResult | dg.AssetCheckResult
        try:
            with repeated_while_away(context), context.resources.workspace.open() as workspace:
                _check_own_tables(context, workspace.tables, deps)
                policies = partial(getattr, context.resources)
                result = perform(StageInputs(workspace, context.partition_key, policies, chosen, context))
        except AnswersPending as pending:
            result = waiting_check(key, pending)
        yield result

    return stage


def waiting_check(key: dg.AssetKey, pending: AnswersPending) -> dg.AssetCheckResult:
    """Build the result of a stage whose rows wait for a batch: no table, no failure; what is downstream is skipped."""
    says: Any = {"description": str(pending), "metadata": {_PENDING: pending.n_rows, "where": pending.where}}
    warning = dg.AssetCheckSeverity.WARN
    return dg.AssetCheckResult(passed=False, asset_key=key, check_name=ROWS_CONSERVED, severity=warning, **says)


def pending_answers(checks: Iterable[dg.AssetCheckEvaluation]) -> list[AnswersPending]:
    """Read from a run's checks what its stages wait for."""
    facts: Any = ({name: value.value for name, value in check.metadata.items()} for check in checks)
    return [AnswersPending(fact[_PENDING], fact["where"]) for fact in facts if _PENDING in fact]


def _check_own_tables(context: dg.AssetExecutionContext, tables: Tables, deps: Sequence[dg.AssetKey]) -> None:
    """Raises ``TableReplaced`` where a table that this run made is another's."""
    for dep in deps:
        own = dg.AssetRecordsFilter(asset_key=dep, asset_partitions=[context.partition_key])
        for record in context.instance.fetch_materializations(own, limit=_N_LATEST).records:
            own_table = record.asset_materialization if record.run_id == context.run.run_id else None
            if own_table is not None:
                key = TableKey(tuple(dep.path), context.partition_key)
                check_fingerprint(tables, key, (own_table.tags or {})[_DATA_VERSION_TAG])


@contextmanager
def repeated_while_away(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Repeat a launched run's stage that met an unavailable database or store: no terminal shows its error."""
    try:
        yield
    except _AWAY as error:
        if RUNS_ON_TAG not in context.run.tags:
            raise
        raise dg.RetryRequested(max_retries=_N_REPEATS, seconds_to_wait=_REPEAT_SECONDS) from error


def stage_result(
    tables: Tables,
    report: StageReport,
    *,
    n_in: int,
    details: Mapping[str, Any] | None = None,
    rejects: Sequence[Reject] | None = None,
    path: str = "",
) -> dg.MaterializeResult:
    """Counts, rejects, ``details`` and the check of a finished stage. ``rejects`` besides those of the stage's table;
    ``path`` replaces its; ``n_in``: rows of the stage before, or of the source."""
    key = report.key
    return dg.MaterializeResult(
        asset_key=dg.AssetKey(list(key.asset)),
        metadata={
            **stage_metadata(report, path=path or str(tables.path(key))),
            **rejects_metadata(tables.stream_rejects(key), rejects or ()),
            **(details or {}),
        },
        check_results=[check_conservation(tables, key, n_in=n_in)],
        # what is made of it is out of date when its rows are others, not when it was materialised again
        data_version=dg.DataVersion(tables.fingerprint(key)),
    )


def conservation_spec(asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """The check's spec: nothing downstream runs when rows were lost."""
    words = "Rows in = rows out + rejected + quarantined + not applicable, counted from the parquet files."
    return dg.AssetCheckSpec(name=ROWS_CONSERVED, asset=asset, blocking=True, description=words)


def check_conservation(tables: Tables, key: TableKey, *, n_in: int) -> dg.AssetCheckResult:
    """Compares ``n_in`` with the rows in the stage's files."""
    n_out, n_rejects, asset = tables.n_rows(key), tables.n_rejects(key), dg.AssetKey(list(key.asset))
    n_not_applicable = tables.facts(key)["n_not_applicable"]
    counts = {"rows_in": n_in, "rows_out": n_out, "rejected_or_quarantined": n_rejects - n_not_applicable}
    counts["not_applicable"] = n_not_applicable
    passed = n_in == n_out + n_rejects
    return dg.AssetCheckResult(asset_key=asset, check_name=ROWS_CONSERVED, passed=passed, metadata=counts)


def progress_lines(
    context: dg.AssetExecutionContext, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[StageProgress], None]:
    """Logs a line for every tenth of the rows, not more often than every other second, and at least every half minute
    while rows are finished. ``clock`` gives seconds."""
    pace, n_logged, logged_at = Pace(clock), 0, clock()
    asset, show = context.asset_key.to_user_string(), progress_sink.get()

    def progress(stand: StageProgress) -> None:
        nonlocal n_logged, logged_at
        n_tenths, now = stand.n_done * _N_LOG_LINES // max(stand.n_rows, 1), clock()
        if show is not None:
            show(f"{asset}: {pace.words(stand)}", pace.left(stand))
        if now - logged_at >= (_LEAST_SECONDS if n_tenths > n_logged else _LOG_SECONDS):
            n_logged, logged_at = n_tenths, now
            context.log.info(pace.words(stand))

    return progress


def progress_log(context: dg.AssetExecutionContext) -> Callable[[int, int], None]:
    """``progress_lines`` for stages that report rows only."""
    log_line = progress_lines(context)
    return lambda n_done, n_rows: log_line(StageProgress(n_done, n_rows))
