"""A Dagster run that launches ``hungry``, as the variables DARKROOM_LAUNCH_… say."""

import dagster as dg

from darkroom.assets.clusters.programs import LauncherResource, Program, launch


@dg.asset
def hungry(context: dg.AssetExecutionContext, launcher: LauncherResource) -> dg.MaterializeResult:
    return launch(context, Program("tests.e2e.hungry"), launcher)


if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        dg.materialize([hungry], instance=instance, resources={"launcher": LauncherResource.from_environment()})
