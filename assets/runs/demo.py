"""What `darkroom demo` builds beside the SFT families: neither reads what the other makes, but for the samples.

    python -m assets.runs.demo rl street_signs

``rl``: the recorded annotations, the RL stages and the RL dataset. ``street_signs``: questions that the tiny model can
learn.
"""

from enum import StrEnum

from assets.definitions import BUNDLED_RECORDING, RECORDED_ANNOTATIONS, SAMPLES, STREET_SIGNS
from assets.runs.build import build_rl_stages, catalog_partitions, partitions_of
from assets.runs.jobs import open_jobs
from pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL
from pipelines.storage.command_errors import program_of
from pipelines.storage.workspace import Workspace
from sandbox.terminal import SafeConsole
from train.runs.command_line import guarded


class DemoPart(StrEnum):
    """What is built beside the families."""

    RL = "rl"
    STREET_SIGNS = "street_signs"


def main(parts: list[DemoPart]) -> None:
    """Builds the parts, one after the other. Finished work is skipped."""
    with guarded(), Workspace.from_environment() as workspace:
        catalog = catalog_partitions(workspace)
        shards, rl_shards = (partitions_of(catalog, source) for source in (EMBEDDED, EMBEDDED_RL))
        with open_jobs(SafeConsole(), workspace, {"sft": shards, "rl": rl_shards}) as jobs:
            if DemoPart.RL in parts:
                for shard in shards:  # the recording is about their images
                    jobs.run(SAMPLES, partition=shard)
                jobs.run(RECORDED_ANNOTATIONS, settings=BUNDLED_RECORDING)
                build_rl_stages(jobs, rl_shards)
            if DemoPart.STREET_SIGNS in parts:
                jobs.run(STREET_SIGNS)


if __name__ == "__main__":
    program_of(main)()
