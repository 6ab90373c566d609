"""What it costs to queue a shard's run for other machines, as `--on` does it.

    python -m measurements.queueing                      # 20 shards of 5,000
    python -m measurements.queueing --partitions 60 --shards 5

Dagster's history is in a PostgreSQL that is started here (Debian's package). CPU seconds a shard, with those of the
database's processes, and seconds on the clock; of all families and of one.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.storage.workspace import Workspace
from measurements.cpu import CpuClock, cpu_clock
from measurements.million.rows import FAMILY
from measurements.partitions import TEAM, make_source
from scripts.postgres import postgres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=5_000)
    parser.add_argument("--shards", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cpu_clock() as clock, postgres("dagster") as url:
        make_source(Path(folder), options.partitions, TEAM)
        os.environ |= {"DARKROOM_HOME": folder, "DAGSTER_HOME": f"{folder}/dagster", "DAGSTER_POSTGRES_URL": url}
        _measure(clock, options.shards)


def _measure(clock: CpuClock, n_shards: int) -> None:
    import dagster as dg

    from darkroom.assets.definitions import SFT, definitions
    from darkroom.assets.graph.families import stage_key
    from darkroom.assets.graph.partitions import SHARDS_OF, update_partitions
    from darkroom.assets.runs.queue import QueuedRuns

    job = definitions().resolve_job_def(SFT)
    with Workspace.from_environment() as workspace, dg.DagsterInstance.get() as instance:
        update_partitions(workspace, instance)
        shards = sorted(instance.get_dynamic_partitions(str(SHARDS_OF["sft"].name)))
        family = [stage_key(FAMILY, stage) for stage in (*STAGES, "rejects")]
        for name, only in {"all families": None, FAMILY: family}.items():
            runs = QueuedRuns(instance, job, "auto")
            runs.submit(shards[:1], only)
            cpu, began = clock(), time.monotonic()
            runs.submit(shards[1 : 1 + n_shards], only)
            cpu_seconds, seconds = (clock() - cpu) / 1000 / n_shards, (time.monotonic() - began) / n_shards
            print(
                f"{len(shards):,} partitions, {name}: {cpu_seconds:.3f} s of CPU a shard, {seconds:.2f} s", flush=True
            )


if __name__ == "__main__":
    main()
