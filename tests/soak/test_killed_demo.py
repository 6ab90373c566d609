"""`darkroom demo`, killed in the middle again and again."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from tests.e2e.demo_runs import command, demo, digests, environment, ledger
from tests.waiting import wait_until

KILLED = ("--no-train", "--family", "crop", "--family", "math_code")
"""Two families stand for all in the runs that are killed: one with images, one that is planned and converted."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A whole run of those families."""
    home = tmp_path_factory.mktemp("uninterrupted")
    demo(root, home, *KILLED)
    return home


def n_acts(home: Path, kind: str) -> int:
    try:
        with sqlite3.connect(f"file:{home / 'ledger.sqlite'}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM acts WHERE kind = ?", (kind,)).fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


MOMENTS: dict[str, tuple[Callable[[Path], int], int]] = {
    "while_images_are_stored": (lambda home: len(list((home / "images").glob("*/*"))), 1),
    "when_the_first_turns_are_written": (lambda home: n_acts(home, "policy"), 3),
    "in_the_middle_of_the_executions": (lambda home: n_acts(home, "sandbox"), 8),
}
"""What there is so many more of than when the demo was started: the kill before may have come late."""


def test_a_run_killed_at_every_moment_goes_on_where_it_was_and_ends_with_the_same_bytes(
    uninterrupted: Path, root: Path, tmp_path: Path
) -> None:
    whole, home = uninterrupted, tmp_path / "killed"
    durable: dict[str, str] = {}
    for n_killed, (moment, (count, n_more)) in enumerate(MOMENTS.items()):
        kill_after(count, n_more, root, home)
        assert len(runs(home, dg.DagsterRunStatus.STARTED)) == 1, moment
        assert len(runs(home, dg.DagsterRunStatus.FAILURE)) == n_killed, moment
        durable = kept(durable, ledger(home))
    demo(root, home, *KILLED)
    assert not runs(home, dg.DagsterRunStatus.STARTED), "the killed run is still open in the UI"
    assert len(runs(home, dg.DagsterRunStatus.FAILURE)) == len(MOMENTS)
    assert kept(durable, ledger(home)).keys() == ledger(whole).keys()
    assert digests(home, "tables", "datasets") == digests(whole, "tables", "datasets")


def kept(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """``after``, where each act of ``before`` is as it was."""
    assert {key: after.get(key) for key in before} == before, "an act that was durable was made again"
    return after


def kill_after(count: Callable[[Path], int], n_more: int, root: Path, home: Path) -> None:
    """Starts a demo and kills its whole process group as soon as so many more are counted."""
    n_before = count(home)
    process = subprocess.Popen(
        command(*KILLED),
        cwd=root,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: process.poll() is not None or count(home) >= n_before + n_more, seconds=1200)
    assert process.poll() is None, "the demo ended before the moment came"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def runs(home: Path, status: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        return list(instance.get_runs(dg.RunsFilter(statuses=[status])))
