"""Runs that are queued for a cluster: one per shard, submitted as the UI does it, and waited for. Dagster's queue,
limits, monitoring and repeats do the work. A shard whose run is queued or running already is not submitted again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.code_pointer import CodePointer
from dagster._core.execution.api import create_execution_plan
from dagster._core.origin import RepositoryPythonOrigin
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.snap import snapshot_from_execution_plan
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from darkroom.assets.clusters.placement import PARTITION_TAG, RUNS_ON_TAG, UNFINISHED, WILL_RETRY_TAG
from darkroom.pipelines.records.digest import digest

MODULE, ATTRIBUTE, LOCATION = "darkroom.assets.definitions", "defs", "darkroom"
_SELECTION_TAG = "darkroom/assets"
_REPEATED_BY_TAG = "dagster/auto_retry_run_id"
# as Dagster's webserver has them, with more time for a statement
_STATEMENT_MILLISECONDS = 60_000
_CONNECTION_SECONDS = 3600
_N_MORE_CONNECTIONS = 20
_Keys = Sequence[dg.AssetKey] | None
_RunConfig = Mapping[str, Any] | None


class QueuedRuns:
    """The runs of one job on shards, placed on a cluster."""

    def __init__(self, instance: dg.DagsterInstance, job: dg.JobDefinition, runs_on: str) -> None:
        self._instance, self._job, self._runs_on = instance, job, runs_on
        self._partitions: dict[str, str] = {}
        self._submitted: set[str] = set()

    def submit(self, partitions: Sequence[str], only: _Keys = None, run_config: _RunConfig = None) -> int:
        """Queue one run for each shard ("" of a job that has no partitions), unless an earlier call has queued it.
        Returns the number of shards that have to wait, for another call: another run makes one of the assets there."""
        keys = sorted(key.to_user_string() for key in only or ())
        # equal for runs that do the same on a shard; ``all``: the whole job as it is
        selection = digest([*keys, run_config] if run_config else keys)[:16] if keys or run_config else "all"
        queued, busy = self._queued(selection, frozenset(only or ()))
        with _connected(self._instance) as instance:
            create = self._creator(instance, only, run_config)
            for partition in [partition for partition in partitions if partition not in self._submitted | busy]:
                tags = {**self._job.run_tags, RUNS_ON_TAG: self._runs_on, _SELECTION_TAG: selection}
                tags |= {PARTITION_TAG: partition} if partition else {}
                run = queued.get(partition) or create(tags=tags)
                if run.status == dg.DagsterRunStatus.NOT_STARTED:
                    # the queue needs no workspace: the daemon that launches the run has one
                    instance.submit_run(run.run_id, workspace=None)  # type: ignore[arg-type]
                self._partitions[run.run_id] = partition
                self._submitted.add(partition)
        return len(busy.intersection(partitions) - self._submitted)

    def ended(self) -> Iterator[tuple[str, dg.DagsterRun]]:
        """Shards with the run that ended them, as they end; a lost run that Dagster repeats has not ended. A shard
        comes again if the caller did not ask for the next one."""
        unfinished = set(self._instance.get_run_ids(self._filter(UNFINISHED)))
        # Dagster decides a moment after a run has failed, and says so in a tag
        undecided = "true" if self._instance.run_retries_enabled else "false"
        for run_id in [run_id for run_id in self._partitions if run_id not in unfinished]:
            if (run := self._instance.get_run_by_id(run_id)) is None or run.status in UNFINISHED:
                continue
            if repeated := run.tags.get(_REPEATED_BY_TAG):
                self._partitions[repeated] = self._partitions.pop(run_id)
            elif run.status != dg.DagsterRunStatus.FAILURE or run.tags.get(WILL_RETRY_TAG, undecided) != "true":
                yield self._partitions[run_id], run
                del self._partitions[run_id]

    def n_open(self) -> int:
        """Shards that have not ended."""
        return len(self._partitions)

    def n_running(self) -> int:
        """Shards on which a worker works."""
        running = self._instance.get_run_ids(self._filter([dg.DagsterRunStatus.STARTED]))
        return len(self._partitions.keys() & set(running))

    def cancel(self) -> None:
        for run_id in self._partitions.keys() & set(self._instance.get_run_ids(self._filter(UNFINISHED))):
            self._instance.run_coordinator.cancel_run(run_id)

    def _filter(self, statuses: Sequence[dg.DagsterRunStatus]) -> dg.RunsFilter:
        return dg.RunsFilter(job_name=self._job.name, statuses=statuses)

    def _creator(
        self, instance: dg.DagsterInstance, only: _Keys, run_config: _RunConfig
    ) -> Callable[..., dg.DagsterRun]:
        """A function that creates a run with ``tags``. All runs have one plan: it and its snapshots are made once."""
        selected = frozenset(only) if only else None
        job = self._job.get_subset(asset_selection=selected) if selected else self._job
        plan = create_execution_plan(job, run_config, instance_ref=instance.get_ref())
        unset = ("run_id", "status", "root_run_id", "parent_run_id", "asset_check_selection", "op_selection")
        return partial(
            instance.create_run,
            **dict.fromkeys((*unset, "resolved_op_selection"), None),
            job_name=job.name,
            run_config=run_config,
            step_keys_to_execute=plan.step_keys_to_execute,
            execution_plan_snapshot=snapshot_from_execution_plan(plan, job.get_job_snapshot_id()),
            job_snapshot=job.get_job_snapshot(),
            parent_job_snapshot=job.get_parent_job_snapshot(),
            asset_selection=selected,
            remote_job_origin=_location().get_job_origin(job.name),
            job_code_origin=_code().get_job_origin(job.name),
            asset_graph=job.asset_layer.asset_graph,
        )

    def _queued(self, selection: str, made: frozenset[dg.AssetKey]) -> tuple[dict[str, dg.DagsterRun], set[str]]:
        """Unfinished runs of the same, by shard; a command that was killed may not have submitted the last one. And
        shards on which another run makes some of the assets ``made`` (empty: all). Trainings wait for no other."""
        queued, busy = dict[str, dg.DagsterRun](), set[str]()
        for run in self._instance.get_runs(self._filter(UNFINISHED)):
            partition = run.tags.get(PARTITION_TAG, "")
            if (run.tags.get(_SELECTION_TAG), run.tags.get(RUNS_ON_TAG)) == (selection, self._runs_on):
                queued[partition] = run
            elif run.run_id not in self._partitions and (not made or made & (run.asset_selection or made)):
                busy.add(partition)
        return queued, busy - {""}


@contextmanager
def _connected(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """The same history, over connections that stay open: Dagster otherwise opens one for each statement, hundreds a
    run. Not for long waits: a connection that was open when the database ended fails once."""
    with dg.DagsterInstance.from_ref(instance.get_ref()) as connected:
        connected.optimize_for_webserver(_STATEMENT_MILLISECONDS, _CONNECTION_SECONDS, _N_MORE_CONNECTIONS)
        yield connected


def _code() -> RepositoryPythonOrigin:
    """The code's origin; in a pod of Dagster's Helm chart with the image and volumes that the chart gives to runs."""
    context = os.environ.get("DAGSTER_CONTAINER_CONTEXT")
    return RepositoryPythonOrigin(
        executable_path=sys.executable,
        code_pointer=CodePointer.from_module(MODULE, ATTRIBUTE, None),
        container_image=os.environ.get("DAGSTER_CURRENT_IMAGE"),
        entry_point=[sys.executable, "-P", "-m", "dagster"],
        container_context=json.loads(context) if context else None,
    )


def _location() -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=MODULE)
    return RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION), "__repository__")
