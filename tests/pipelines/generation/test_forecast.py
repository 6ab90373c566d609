"""What further rows will become, from those that were built."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.pipelines.generation.funnel import Forecast, Funnel, FunnelStep
from darkroom.pipelines.records import Usage


def funnel(n_samples: int, n_accepted: int, n_not_drawn: int = 0, calls: int = 0) -> Funnel:
    steps = (
        FunnelStep("samples", n_samples, {}),
        FunnelStep("drafts", n_accepted, {"not_drawn": n_not_drawn, "unsuitable": 3}, 5, Usage(calls, 10, 20, 0.5)),
        FunnelStep("runs", n_accepted, {}, 0, Usage(calls, 30, 40, 0.25)),
        FunnelStep("verdicts", n_accepted, {}, 0, Usage(2 * calls, 1, 1, 1.0)),
        FunnelStep("trajectories", n_accepted, {}),
    )
    return Funnel(steps)


@pytest.mark.parametrize(("rate", "n_measured", "n_rows"), [(0.02, 60, 500), (0.3, 40, 40), (0.9, 200, 900)])
def test_the_interval_holds_the_rows_that_come(rate: float, n_measured: int, n_rows: int) -> None:
    chance = np.random.default_rng(7)
    seen, later = chance.binomial(n_measured, rate, 400), chance.binomial(n_rows, rate, 400)
    made = {k: Forecast.of(funnel(n_measured, int(k)), n_rows) for k in set(seen)}
    held = [made[first].least <= k <= made[first].most for first, k in zip(seen, later, strict=True)]
    assert 0.98 <= np.mean(held) <= 1


def test_costs_grow_with_the_rows_and_are_apart_by_role() -> None:
    made = Forecast.of(funnel(100, 50, calls=10), 1000)
    assert made.accepted == 500
    assert made.written == Usage(200, 400, 600, 7.5)
    assert made.judged == Usage(200, 10, 10, 10.0)


def test_samples_that_no_draft_was_asked_for_count_nothing() -> None:
    assert Forecast.of(funnel(1000, 50, n_not_drawn=900), 1000).accepted == 500


def test_where_nothing_was_tried_nothing_is_known() -> None:
    assert funnel(40, 0, n_not_drawn=40).n_tried == 0
