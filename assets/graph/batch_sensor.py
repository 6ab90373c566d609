"""The sensor that runs stages again when the batches that they wait for have ended."""

import asyncio
from collections.abc import Iterator, Sequence

import dagster as dg

from darkroom.assets.graph.families import REJECTS
from darkroom.assets.graph.resources import PolicyResource
from darkroom.assets.graph.rl import RL_STAGES
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.models.policies import OpenAIPolicy
from darkroom.pipelines.models.policies.batch_queue import ended_batches
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.batch_table import BatchTable
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.workspace import Workspace

_SECONDS = 300
_ROLES = ("policy", "converter", "judge", "student")


@dg.sensor(
    name="answered_batches",
    minimum_interval_seconds=_SECONDS,
    asset_selection=dg.AssetSelection.all(),
    required_resource_keys={"workspace", *_ROLES},
    description="Runs a stage and those after it on a shard when the batches that it waits for have ended.",
)
def answered_batches(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest]:
    """A service that does not answer fails the tick; the next one asks again."""
    roles = [getattr(context.resources, role) for role in _ROLES]
    with context.resources.workspace.open() as workspace:
        yield from asyncio.run(_requests(workspace, [role for role in roles if role.kind == "openai"]))


async def _requests(workspace: Workspace, roles: Sequence[PolicyResource]) -> list[dg.RunRequest]:
    batches = BatchTable(workspace.ledger).open()
    policies = [OpenAIPolicy(role.endpoint, workspace.images) for role in roles] if batches else []
    try:
        ended = await ended_batches(batches, policies)
    finally:
        for policy in policies:
            await policy.close()
    waiting = by_key(((batch.stage, batch.partition), batch.batch) for batch in batches)
    return [_request(*key, names) for key, names in waiting.items() if ended.issuperset(names)]


def _request(stage: str, partition: str, batches: Sequence[str]) -> dg.RunRequest:
    """A run of the stage and of all that come after it, once for these batches."""
    *family, name = stage.split("/")
    stages = [*STAGES, REJECTS] if family else [*RL_STAGES]
    later = stages[stages.index(name) :] if name in stages else [name]
    keys, run_key = [dg.AssetKey([*family, each]) for each in later], digest(sorted(batches))
    return dg.RunRequest(run_key, asset_selection=keys, partition_key=partition if name in stages else None)
