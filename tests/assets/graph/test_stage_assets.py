"""What a stage says of its progress in Dagster's log."""

from __future__ import annotations

from types import SimpleNamespace

import dagster as dg

from assets.graph.stage_assets import progress_lines
from pipelines.storage.stage import StageProgress


def logged(*, n_rows: int, seconds_per_row: float) -> list[str]:
    """The shares that are logged while so many rows are finished one after the other."""
    said: list[str] = []
    now = [0.0]
    log = SimpleNamespace(info=lambda line: said.append(line.split("(")[1].split(")")[0]))
    context = SimpleNamespace(asset_key=dg.AssetKey(["crop", "runs"]), log=log)
    progress = progress_lines(context, clock=lambda: now[0])
    for n_done in range(1, n_rows + 1):
        now[0] += seconds_per_row
        progress(StageProgress(n_done, n_rows))
    return said


def test_every_tenth_is_logged():
    assert logged(n_rows=40, seconds_per_row=1.0) == [f"{tenths}0%" for tenths in range(1, 11)]


def test_a_stage_that_is_done_in_a_second_logs_nothing():
    assert logged(n_rows=1000, seconds_per_row=0.001) == []


def test_fast_rows_are_logged_every_other_second():
    assert logged(n_rows=1000, seconds_per_row=0.004) == ["50%", "100%"]


def test_slow_rows_are_logged_every_half_minute():
    assert logged(n_rows=3, seconds_per_row=20.0) == ["33%", "67%", "100%"]
    assert len(logged(n_rows=1000, seconds_per_row=1.0)) > 30
