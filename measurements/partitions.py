"""How long commands and the UI take with thousands of partitions.

    python -m measurements.partitions                # 500 and 5,000 partitions of one sample
    python -m measurements.partitions --partitions 100
    python -m measurements.partitions --postgres --partitions 5000 --what definitions status catalog backfill

A source of so many shards, each with the tables of one family; the SFT partitions are registered and materialised in
Dagster's storage: SQLite, or a PostgreSQL that is started here (Debian's package). CPU seconds of: the tables of
`darkroom summary`, `darkroom explain`, the definitions' load, Dagster's partitions compared with the catalog's (the
sensor's tick), and what pages of the UI ask for, by GraphQL of the webserver's own application, the second time it is
asked: an asset's partitions (`status`), all assets at once (`catalog`), a backfill of one family on all shards
(`backfill`).
"""

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample, Trajectory, Usage, to_row
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from measurements.million.rows import FAMILY, made_sample, made_trajectory
from scripts.postgres import postgres

_RESULT = "CPU seconds: "
ALONE, TEAM = (Path(str(files("darkroom.assets") / name)) for name in ("dagster.yaml", "dagster_team.yaml"))
_STATUS = """query Status($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  partitionStats { numMaterialized numPartitions } partitionKeysByDimension { partitionKeys }
  assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions unmaterializedPartitions } } } } }"""
_CATALOG = """query Catalog { assetNodes(loadMaterializations: true) { id staleStatus
  partitionStats { numMaterialized numMaterializing numFailed numPartitions }
  assetMaterializations(limit: 1) { runId timestamp } } }"""
_LAUNCH = """mutation Launch($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_BACKFILL = """query Backfill($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
  status numPartitions assetBackfillData { rootTargetedPartitions { partitionKeys }
    assetBackfillStatuses { ... on AssetPartitionsStatusCounts { numPartitionsTargeted } } } } } }"""

_OF_TABLES = {"summary", "explain", "sensor"}
"""What reads the tables; the others ask Dagster alone."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[500, 5_000])
    parser.add_argument("--what", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(f"{_RESULT}{measure(options.measure)}", flush=True)
        return
    for n_partitions in options.partitions:
        with tempfile.TemporaryDirectory() as folder, postgres("dagster") if options.postgres else nullcontext() as url:
            home = Path(folder)
            environment = os.environ | {"DARKROOM_HOME": folder, "DAGSTER_HOME": f"{folder}/dagster"}
            if url:
                environment["DAGSTER_POSTGRES_URL"] = url
            make_source(home, n_partitions, TEAM if url else ALONE)
            if _OF_TABLES & set(options.what):
                _write_tables(Tables(home / "tables"), n_partitions)
            register = [sys.executable, "-c", f"from measurements.partitions import register; register({n_partitions})"]
            subprocess.run(register, check=True, env=environment)
            for what in options.what:
                command = [sys.executable, "-m", "measurements.partitions", "--measure", what]
                found = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
                print(f"{n_partitions:,} partitions, {what}: {_seconds(found):.2f} s", flush=True)


def _seconds(output: bytes) -> float:
    """The result among what Dagster prints."""
    return float(next(line for line in output.decode().splitlines() if line.startswith(_RESULT))[len(_RESULT) :])


def measure(what: str) -> float:
    """CPU seconds of the second call where the first one loads what both need; of the definitions' the first."""
    with Workspace.from_environment() as workspace:
        act = MEASURED[what](workspace)
        began = time.process_time()
        act()
        return time.process_time() - began


def _summary(workspace: Workspace) -> Callable[[], Any]:
    from rich.console import Console

    from darkroom.assets.terminal.summary import print_summary
    from darkroom.pipelines.generation.recipes import load_recipes

    recipes = list(load_recipes().values())
    console = Console(file=io.StringIO(), width=120)
    return lambda: print_summary(console, workspace, recipes, list(Catalog(workspace.sources).partitions()))


def _explain(workspace: Workspace) -> Callable[[], Any]:
    from darkroom.pipelines.publishing.explain import explain

    return lambda: explain(workspace, made_sample(0).sample_id)


def _definitions(_: Workspace) -> Callable[[], Any]:
    def load() -> None:
        from darkroom.assets.definitions import defs

        assert defs().resolve_all_asset_keys()

    return load


def _sensor(workspace: Workspace) -> Callable[[], Any]:
    import dagster as dg

    from darkroom.assets.graph.partitions import partition_changes

    def tick() -> None:
        with dg.DagsterInstance.get() as instance:
            assert partition_changes(workspace, instance, {}) == []

    return tick


_Ask = Callable[[str, dict[str, Any]], Any]


def _status(workspace: Workspace) -> Callable[[], Any]:
    n_partitions = Catalog(workspace.sources).configs()["made"].n_shards

    def act(ask: _Ask) -> None:
        node = ask(_STATUS, {"key": {"path": [FAMILY, "drafts"]}})["assetNodeOrError"]
        assert node["partitionStats"]["numMaterialized"] == n_partitions, node["partitionStats"]
        assert len(node["assetPartitionStatuses"]["materializedPartitions"]) == n_partitions

    return _asked_twice(act)


def _catalog(_: Workspace) -> Callable[[], Any]:
    return _asked_twice(lambda ask: ask(_CATALOG, {})["assetNodes"][0])


def _backfill(_: Workspace) -> Callable[[], Any]:
    import dagster as dg

    from darkroom.assets.graph.partitions import SHARDS_OF

    ask = _webserver()
    with dg.DagsterInstance.get() as instance:
        shards = list(instance.get_dynamic_partitions(str(SHARDS_OF["sft"].name)))
    assets = [{"path": [FAMILY, stage]} for stage in STAGES]
    launched = ask(_LAUNCH, {"params": {"assetSelection": assets, "partitionNames": shards}})
    backfill = launched["launchPartitionBackfill"]["backfillId"]

    def act() -> None:
        assert ask(_BACKFILL, {"id": backfill})["partitionBackfillOrError"]["numPartitions"] == len(shards)

    act()
    return act


def _asked_twice(act: Callable[[_Ask], Any]) -> Callable[[], Any]:
    ask = _webserver()
    act(ask)
    return lambda: act(ask)


def _webserver() -> _Ask:
    import dagster as dg
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import ModuleTarget
    from dagster_webserver.app import create_app_from_workspace_process_context
    from starlette.testclient import TestClient

    target = ModuleTarget(
        module_name="darkroom.assets.definitions", attribute="defs", working_directory=None, location_name="a"
    )
    context = WorkspaceProcessContext(dg.DagsterInstance.get(), target)
    client = TestClient(create_app_from_workspace_process_context(context))

    def ask(query: str, variables: dict[str, Any]) -> Any:
        return client.post("/graphql", json={"query": query, "variables": variables}).json()["data"]

    return ask


MEASURED = {
    "summary": _summary,
    "explain": _explain,
    "definitions": _definitions,
    "sensor": _sensor,
    "status": _status,
    "catalog": _catalog,
    "backfill": _backfill,
}


def make_source(home: Path, n_partitions: int, dagster: Path) -> None:
    """A source of so many shards, one question each, and Dagster's home with its configuration ``dagster``."""
    questions = home / "questions.jsonl"
    questions.write_text("".join(f'{{"question": "What is {n}?", "answer": "{n}"}}\n' for n in range(n_partitions)))
    (home / "sources").mkdir()
    columns = {"question": "question", "answer": "answer"}
    config = {"kind": "jsonl", "questions": str(questions), "path": str(home), "columns": columns}
    source = config | {"n_shards": n_partitions, "used_for": ["sft"]}
    (home / "sources" / "made.yaml").write_text(json.dumps(source))
    (home / "dagster").mkdir()
    shutil.copy(dagster, home / "dagster" / "dagster.yaml")


def _write_tables(tables: Tables, n_partitions: int) -> None:
    facts = {"n_in": 1, "n_out": 1, "n_retryable": 0, "reasons": {}, "usage": to_row(Usage())}
    for n in range(n_partitions):
        sample, name = made_sample(n), f"made-{n:04}"
        tables.write(TableKey(SAMPLES, name), Sample, [sample], (), inputs="", facts=facts)
        for stage in STAGES:
            rows = [made_trajectory(n, sample)] if stage == STAGES[-1] else []
            tables.write(TableKey((FAMILY, stage), name), Trajectory, rows, (), inputs="", facts=facts)


def register(n_partitions: int) -> None:
    """The partitions as the sensor would register them, and a materialisation of each."""
    import dagster as dg

    from darkroom.assets.graph.partitions import update_partitions

    with Workspace.from_environment() as workspace, dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(60_000, 3600, 20)  # one connection for all events
        update_partitions(workspace, instance)
        for n in range(n_partitions):
            key = dg.AssetKey([FAMILY, "drafts"])
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=f"made-{n:04}"))


if __name__ == "__main__":
    main()
