"""Ctrl-C ends the command, not the processes that copy its steps' output; the history's files stay open in SQLite."""

import os
import signal
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.dagster_home.instance import keep_files_open, keep_from_ctrl_c


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


def test_the_history_keeps_its_files_open_and_everybody_reads_it(tmp_path: Path) -> None:
    opened: list[set[str]] = []

    @dg.asset(check_specs=[dg.AssetCheckSpec("whole", asset="rows")])
    def rows(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        files = (os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
        of_history = [Path(file).stem for file in files if file.endswith(".db") and file.startswith(f"{tmp_path}/")]
        opened.append({"run" if name == context.run.run_id else name for name in of_history})
        return dg.MaterializeResult(check_results=[dg.AssetCheckResult(check_name="whole", passed=True)])

    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.from_config(str(tmp_path)) as plain:
        as_always = dg.materialize([rows], instance=plain)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        keep_files_open(instance)
        results = [dg.materialize([rows], instance=instance) for _ in range(6)]
        with dg.DagsterInstance.from_config(str(tmp_path)) as beside:
            for result in [as_always, *results]:
                kinds = [
                    [event.dagster_event_type for event in each.all_logs(result.run_id) if event.is_dagster_event]
                    for each in (instance, beside)
                ]
                assert kinds[0] == kinds[1]
                assert len(kinds[0]) == len([*plain.all_logs(as_always.run_id)])
            assert beside.get_latest_materialization_event(rows.key).run_id == results[-1].run_id
    assert opened[0] == set()
    assert all({"run", "index"} <= files and len(files) <= 3 for files in opened[1:]), opened
