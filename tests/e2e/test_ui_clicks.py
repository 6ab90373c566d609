"""Dagster's UI as an engineer uses it, by clicks: materialise, backfill, a rejected row, a failed check, a retry."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from scripts.screenshots import running, wait_for
from tests.assets.conftest import add_signs
from tests.conftest import SmallSource
from tests.e2e.visitor import Visitor, visitor
from tests.ports import free_port

Run = Callable[..., subprocess.CompletedProcess[str]]
FIRST, *OTHERS = SHARDS = ["signs-0000", "signs-0001", "signs-0002"]
"""The image that is cut short is in the first."""
DRAFTS = ("crop", "drafts")
RUN = "(Array.from(document.querySelectorAll('a')).find(link => /^[0-9a-f]{8}$/.test(link.innerText.trim())))"
"""The first run in a list."""


@pytest.fixture
def url(workspace: Workspace, small_source: SmallSource, tmp_path: Path) -> Iterator[str]:
    """`darkroom ui` with its daemon, on a source of three shards."""
    add_signs(workspace, small_source, tmp_path / "signs", n_shards=len(SHARDS))
    port = free_port()
    with running([str(Path(sys.executable).with_name("darkroom")), "ui", "--port", str(port)]):
        wait_for(f"http://127.0.0.1:{port}/server_info")
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_the_ui_that_a_script_started_in_the_background_ends_when_it_is_told_to(
    clean_environment: dict[str, str], number: signal.Signals
) -> None:
    port = free_port()
    script = f'darkroom ui --port {port} >"$DARKROOM_HOME.log" 2>&1 & echo $!; wait'
    with subprocess.Popen(["sh", "-c", script], env=clean_environment, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        ui = int(shell.stdout.readline())
        try:
            wait_for(f"http://127.0.0.1:{port}/server_info")
            os.kill(ui, number)
            shell.wait(timeout=120)
        finally:
            with suppress(ProcessLookupError):
                os.kill(ui, signal.SIGKILL)
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


@pytest.fixture
def engineer(port: int) -> Iterator[Visitor]:
    with visitor(port, (1500, 1000)) as visiting:
        yield visiting


def test_an_engineer_materialises_backfills_follows_a_reject_and_retries(
    engineer: Visitor, url: str, workspace: Workspace, run: Run
) -> None:
    launch(engineer, url, FIRST, upstream_is_missing=True)
    engineer.until_said("Materialized (1)")
    launch(engineer, url, *OTHERS)
    engineer.until_said("Materialized (3)")

    (reject,) = workspace.tables.read_rejects(TableKey(("samples",), FIRST))
    explained = run(*command_of_reject(engineer, url), COLUMNS="200").stdout
    assert reject.reason in explained
    assert reject.evidence in explained

    lost = lose_a_row(workspace)
    launch(engineer, url, FIRST)
    engineer.click(words("Runs"))
    engineer.until_said("Failure")
    until_check(engineer, url, "Failed")
    lost.unlink()
    engineer.click(words("Runs"))
    engineer.click(words("Failed"))
    engineer.click(RUN)
    engineer.click(words("Re-execute", whole=False))
    engineer.until_said("Success")
    until_check(engineer, url, "Passed")

    with dg.DagsterInstance.from_config(str(workspace.home / "dagster")) as instance:
        retried, failed, *backfilled, _ = runs = instance.get_runs()
    assert [each.status.name for each in runs] == ["SUCCESS", "FAILURE", "SUCCESS", "SUCCESS", "SUCCESS"]
    assert retried.parent_run_id == failed.run_id
    assert sorted(each.tags["dagster/partition"] for each in backfilled if "dagster/backfill" in each.tags) == OTHERS


def launch(engineer: Visitor, url: str, *partitions: str, upstream_is_missing: bool = False) -> None:
    """Materialises partitions of the drafts, as the dialog offers it."""
    engineer.open(f"{url}/assets/{'/'.join(DRAFTS)}?view=partitions")
    engineer.until_said(SHARDS[-1])
    engineer.click(words("Materialize…"))
    if upstream_is_missing:
        engineer.click(words("Confirm"))
    engineer.click(words("Select a partition or create one"))
    engineer.until_said(f"Select all ({len(SHARDS)})")
    for partition in partitions:
        engineer.click(words(partition))
    engineer.until_said(f"Partition selection\n{len(partitions)} partition")
    engineer.click(words("Partition selection"))  # folded: the list of partitions covers the button
    engineer.click(words("Launch ", whole=False))


def command_of_reject(engineer: Visitor, url: str) -> list[str]:
    """The command that the page of the samples names beside the reject of the first shard."""
    engineer.open(f"{url}/assets/samples?view=partitions")
    engineer.click(words(FIRST))
    engineer.until_said("darkroom explain ")
    (command,) = re.findall(r"darkroom explain \S+", engineer.text())
    return str(command).split()


def lose_a_row(workspace: Workspace) -> Path:
    """The table of the first shard's drafts, now without its last row; its inputs are what they were."""
    table = Path(str(workspace.tables.path(TableKey(DRAFTS, FIRST))))
    rows = pq.read_table(table)
    pq.write_table(rows.slice(0, rows.num_rows - 1), table)
    return table


def until_check(engineer: Visitor, url: str, outcome: str) -> None:
    """Looks at the check of the drafts until it has this outcome."""
    engineer.open(f"{url}/assets/{'/'.join(DRAFTS)}")
    engineer.click(words("Checks"))
    engineer.until_said(f"Evaluation result\n{outcome}")


def words(text: str, *, whole: bool = True) -> str:
    """The last element of the page with this text that nothing covers: dialogs come last."""
    test = f"words === {json.dumps(text)}" if whole else f"words.startsWith({json.dumps(text)})"
    return f"""(Array.from(document.querySelectorAll('button, a, span, div')).filter(node => {{
        const words = (node.innerText || '').trim(), box = node.getBoundingClientRect();
        if (!({test}) || !box.width || !box.height) return false;
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return top && (node.contains(top) || top.contains(node));
    }}).at(-1))"""
