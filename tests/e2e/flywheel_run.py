"""One turn of the flywheel by its job, as the environment says; the turn is the only argument."""

import sys

import dagster as dg

from darkroom.assets.definitions import definitions
from darkroom.assets.graph.flywheel import GROUP

SETTINGS = {"epochs": 1.0, "batch_size": 1, "learning_rate": 1e-4, "max_pixels": 3136}
"""Of each turn's SFT: it need not learn anything more."""


def run_turn(turn: str) -> dg.ExecuteInProcessResult:
    """Runs rows, dataset and checkpoint of ``turn``; raises what an asset raises."""
    config = {"ops": {"flywheel__checkpoint": {"config": SETTINGS}}}
    with dg.instance_for_test() as instance:
        job = definitions().resolve_job_def(GROUP)
        return job.execute_in_process(instance=instance, partition_key=turn, run_config=config)


if __name__ == "__main__":
    run_turn(sys.argv[1])
