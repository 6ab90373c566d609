"""Whether a command starts a daemon of its own: not beside another machine's, whatever that one's clock says."""

from __future__ import annotations

import time

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from darkroom.assets.dagster_home.daemon import Daemon
from tests.matrices import first_quickly


class Starts(Daemon):
    """Counts instead of starting one."""

    n_started = 0

    def _start(self) -> None:  # type: ignore[override]
        self.n_started += 1


def give_sign(instance: dg.DagsterInstance, timestamp: float) -> None:
    instance.add_daemon_heartbeat(DaemonHeartbeat(timestamp, "QUEUED_RUN_COORDINATOR", "another"))


@pytest.mark.parametrize("skew_seconds", first_quickly([-600.0, 0.0, 600.0]))
def test_a_daemon_lives_as_long_as_its_signs_change(instance: dg.DagsterInstance, skew_seconds: float) -> None:
    now, began = [0.0], time.time() + skew_seconds
    daemon = Starts(instance, clock=lambda: now[0])
    for now[0] in range(0, 272, 2):
        give_sign(instance, began + now[0] // 30 * 30)
        daemon.ensure()
    assert daemon.n_started == 0
    now[0] += 88.0
    daemon.ensure()
    assert daemon.n_started == 0
    now[0] += 2.0
    daemon.ensure()
    assert daemon.n_started == 1


@pytest.mark.parametrize("seconds_ago", [None, 1_000.0])
def test_where_there_is_no_sign_or_an_old_one_it_is_started_at_once(
    instance: dg.DagsterInstance, seconds_ago: float | None
) -> None:
    if seconds_ago is not None:
        give_sign(instance, time.time() - seconds_ago)
    daemon = Starts(instance)
    daemon.ensure()
    assert daemon.n_started == 1
