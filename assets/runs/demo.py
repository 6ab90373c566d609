"""What `darkroom demo` builds beside the SFT families: recorded annotations, the RL stages and the RL dataset.

    python -m assets.runs.demo

Neither reads what the other makes, but for the samples.
"""

import os

from assets.definitions import BUNDLED_RECORDING, RECORDED_ANNOTATIONS, SAMPLES
from assets.runs.build import build_rl_stages, catalog_partitions, partitions_of
from assets.runs.jobs import open_jobs
from pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL
from pipelines.storage.command_errors import program_of
from pipelines.storage.workspace import Workspace
from sandbox.terminal import SafeConsole
from train.runs.command_line import guarded

NICENESS = 5
"""The command's own work goes first: its fine-tuning, which leaves a core idle, waits for none of this."""


def main() -> None:
    """Finished work is skipped."""
    os.nice(NICENESS)
    with guarded(), Workspace.from_environment() as workspace:
        catalog = catalog_partitions(workspace)
        shards, rl_shards = (partitions_of(catalog, source) for source in (EMBEDDED, EMBEDDED_RL))
        with open_jobs(SafeConsole(), workspace, {"sft": shards, "rl": rl_shards}) as jobs:
            for shard in shards:  # the recording is about their images
                jobs.run(SAMPLES, partition=shard)
            jobs.run(RECORDED_ANNOTATIONS, settings=BUNDLED_RECORDING)
            build_rl_stages(jobs, rl_shards)


if __name__ == "__main__":
    program_of(main)()
