"""Jobs in the process of a command."""

from __future__ import annotations

import dagster as dg
import pytest

from darkroom.assets.builds.jobs import materialize
from darkroom.sandbox.terminal import SafeConsole


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, dg.DagsterExecutionInterruptedError])
def test_ctrl_c_within_a_step_is_no_failure_of_the_asset(interrupt: type[BaseException]) -> None:
    @dg.asset
    def rows() -> None:
        raise interrupt

    definitions = dg.Definitions([rows], jobs=[dg.define_asset_job("build")])
    with dg.DagsterInstance.ephemeral() as instance, pytest.raises(KeyboardInterrupt):
        materialize(
            definitions.resolve_job_def("build"), instance, SafeConsole(quiet=True), on_asset=lambda asset: None
        )
