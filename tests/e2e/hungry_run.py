"""A Dagster run that launches ``hungry``, as the variables DARKROOM_LAUNCH… say. Its output is below DARKROOM_HOME."""

import dagster as dg

from darkroom.assets.launching import LauncherResource, Program, launch
from darkroom.pipelines.storage.workspace import Workspace


@dg.asset
def hungry(context: dg.AssetExecutionContext, launcher: LauncherResource) -> dg.MaterializeResult:
    output = Workspace.from_environment().checkpoint("hungry")
    return launch(context, Program("tests.e2e.hungry", output, ()), launcher)


if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        dg.materialize([hungry], instance=instance, resources={"launcher": LauncherResource.from_environment()})
