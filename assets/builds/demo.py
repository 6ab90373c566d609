"""Parts of the demo that a child process builds, in this order; `darkroom demo` waits for each where it needs it.

    python -m darkroom.assets.builds.demo families street_signs rl

``families``: most SFT families on all shards but the first. ``street_signs``: questions that the tiny model can learn.
``rl``: the recorded annotations, the RL stages and the RL dataset, which GRPO alone waits for.
"""

from enum import StrEnum

from darkroom.assets.builds.build import N_IN_CHILD, build_rl_stages, catalog_partitions, fill_shards, partitions_of
from darkroom.assets.builds.child_process import mark
from darkroom.assets.builds.jobs import open_jobs
from darkroom.assets.definitions import BUNDLED_RECORDING, RECORDED_ANNOTATIONS, SAMPLES, STREET_SIGNS
from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.terminal import SafeConsole
from darkroom.train.runs.command_line import guarded


class DemoPart(StrEnum):
    """A part that is built beside the command's own jobs."""

    FAMILIES = "families"
    STREET_SIGNS = "street_signs"
    RL = "rl"


def main(parts: list[DemoPart]) -> None:
    """Build the parts, one after the other. Finished work is skipped."""
    with guarded(), Workspace.from_environment() as workspace:
        catalog = catalog_partitions(workspace)
        shards, rl_shards = (partitions_of(catalog, source) for source in (EMBEDDED, EMBEDDED_RL))
        used: dict[Use, list[str]] = {"sft": shards, "rl": rl_shards}
        with open_jobs(SafeConsole(), workspace, used, shows_first_trajectory=False) as jobs:
            for part in parts:
                match part:
                    case DemoPart.FAMILIES:
                        fill_shards(jobs, list(load_recipes().values())[:N_IN_CHILD], shards[1:], {})
                    case DemoPart.STREET_SIGNS:
                        jobs.run(STREET_SIGNS)
                    case DemoPart.RL:
                        for shard in shards:  # the recording is about their images
                            jobs.run(SAMPLES, partition=shard)
                        jobs.run(RECORDED_ANNOTATIONS, settings=BUNDLED_RECORDING)
                        build_rl_stages(jobs, rl_shards)
                mark(part)


if __name__ == "__main__":
    program_of(main)()
