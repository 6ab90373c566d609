"""Ctrl-C ends the command, not the processes that copy its steps' output."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.dagster_home.instance import keep_from_ctrl_c


def blocked_signals(process: int) -> set[int]:
    [mask] = [line.split()[1] for line in Path(f"/proc/{process}/status").read_text().splitlines() if "SigBlk" in line]
    return {number for number in range(1, 65) if int(mask, 16) >> number - 1 & 1}


def copying_processes() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    lines = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [child for child, line in lines.items() if b"watch_orphans" in line or line.startswith(b"tail\0-F")]


def test_the_processes_that_copy_output_do_not_get_ctrl_c(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copying: list[set[int]] = []
    own: list[set[int]] = []

    @dg.asset
    def rows() -> None:
        print("a line of the step")
        copying.extend(blocked_signals(child) for child in copying_processes())
        own.append(blocked_signals(os.getpid()))

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        keep_from_ctrl_c(instance)
        assert dg.materialize([rows], instance=instance).success
        [out] = tmp_path.glob("storage/*/compute_logs/*.out")
        assert "a line of the step" in out.read_text()
    assert len(copying) == 4
    assert all(signal.SIGINT in blocked for blocked in copying)
    assert signal.SIGINT not in own[0]
