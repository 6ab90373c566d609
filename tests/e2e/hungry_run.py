"""A Dagster run that launches ``hungry``, as the variables DARKROOM_LAUNCH… say. Its output is below DARKROOM_HOME."""

from collections.abc import Iterator

import dagster as dg

from assets.launching import LauncherResource, Program, launch
from assets.launching.run import Event
from pipelines.workspace import Workspace


@dg.asset
def hungry(context: dg.AssetExecutionContext, launcher: LauncherResource) -> Iterator[Event]:
    output = Workspace.from_environment().checkpoint("hungry")
    yield from launch(context, Program("tests.e2e.hungry", output, ()), launcher)


if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        dg.materialize([hungry], instance=instance, resources={"launcher": LauncherResource.from_settings()})
