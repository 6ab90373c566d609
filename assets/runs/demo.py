"""What `darkroom demo` builds beside the SFT families: neither reads what the other makes, but for the samples.

    python -m assets.runs.demo rl train

``rl``: the recorded annotations, the RL stages and the RL dataset. ``train``: the street signs, and the tiny model that
can learn them, evaluated untrained and trained.
"""

from enum import StrEnum

import dagster as dg

from assets.definitions import BUNDLED_RECORDING, RECORDED_ANNOTATIONS, SAMPLES, STREET_SIGNS, TRAIN
from assets.graph.training_config import DEMO_SETTINGS
from assets.runs.build import build_rl_stages, catalog_partitions, partitions_of
from assets.runs.jobs import Jobs, open_jobs
from pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL
from pipelines.storage.command_errors import program_of
from pipelines.storage.workspace import Workspace
from sandbox.terminal import SafeConsole
from train.runs.command_line import guarded


class DemoPart(StrEnum):
    """What is built beside the families."""

    RL = "rl"
    TRAIN = "train"


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
            if DemoPart.TRAIN in parts:
                _train_on_street_signs(jobs)


def _train_on_street_signs(jobs: Jobs) -> None:
    settings = dict(DEMO_SETTINGS)
    base, trained = ["base_model", "evaluation"], ["sft_checkpoint", "grpo_checkpoint", "evaluation"]
    untrained = settings | {"evaluation": {**settings["evaluation"], "checkpoint": "base"}}
    jobs.run(STREET_SIGNS)
    for names, chosen in ((base, untrained), (trained, settings)):
        only = [dg.AssetKey(name) for name in names]
        jobs.run(TRAIN, settings={name: chosen[name] for name in names}, only=only)


if __name__ == "__main__":
    program_of(main)()
