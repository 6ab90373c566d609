"""A call that the machine did not let run is no timeout of its code."""

import pytest

from sandbox import Limits, SandboxPool
from sandbox.clock import ProcessClock


def test_a_call_that_only_waited_for_a_cpu_ends_without_a_verdict(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's account is the one thing replaced: it says that the call waits more and more, as at load 100."""
    with pool.group(limits=Limits(seconds=0.2, wall_seconds=0.4)) as group, group.session() as session:
        accounts = iter(range(1, 1_000_000))
        monkeypatch.setattr(ProcessClock, "waited_seconds", lambda _clock: 0.0 + next(accounts))
        observation = session.run("import time; time.sleep(30)")
        assert (observation.status, observation.broken, session.lost) == ("killed", True, True)
        assert observation.error == "SessionEnded: this machine was too busy to run the call"


def test_a_call_that_sleeps_past_its_time_is_a_timeout(pool: SandboxPool) -> None:
    with pool.group(limits=Limits(seconds=0.2)) as group, group.session() as session:
        observation = session.run("import time; time.sleep(30)")
        assert (observation.status, session.lost) == ("timeout", False)
