"""Plots of a training: what is drawn, and how large it is."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from darkroom.train.runs import history

STEPS = [
    {"step": n, "epoch": n / 10, "loss": 5.0 / n, "reward": n / 20, "kl": float("nan") if n == 3 else 0.1, "note": "x"}
    for n in range(1, 21)
]


def opened(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def test_the_columns_of_numbers_are_found_in_their_order() -> None:
    assert history.number_columns(STEPS) == ["loss", "reward", "kl"]


@pytest.mark.parametrize("n_steps", [1, 2, 5000])
def test_a_small_plot_is_shown_at_once_on_the_asset_page(n_steps: int) -> None:
    random = np.random.default_rng(0).random(n_steps)
    steps = [{"step": n, "loss": float(value)} for n, value in enumerate(random)]
    line = history.embedded(history.tiny_plot(steps, "loss"), "loss")
    assert len(line) < 900


def test_a_small_plot_falls_where_the_column_falls() -> None:
    dark = np.argwhere(~np.asarray(opened(history.tiny_plot(STEPS, "loss"))))
    first, last = dark[dark[:, 1].argmin()], dark[dark[:, 1].argmax()]
    assert first[0] < last[0]


@pytest.mark.parametrize(
    ("n_columns", "across", "down"),
    [(1, 1, 1), (3, 3, 1), (4, 4, 1), (5, 4, 2), *(pytest.param(n, 4, 8, marks=pytest.mark.soak) for n in (32, 40))],
)
def test_every_column_has_a_panel_four_in_a_row(n_columns: int, across: int, down: int) -> None:
    columns = [f"c{n}" for n in range(n_columns)]
    png = history.panel_plot([{"step": 1, **dict.fromkeys(columns, 0.5)}], columns, title="all")
    width, height = opened(png).size
    assert (width, height) == (200 * across, round(128 * down + 32))
    assert len(png) < 100_000


def test_a_column_with_gaps_and_infinities_is_drawn_from_what_is_there() -> None:
    assert opened(history.column_plot(STEPS, "kl", title="kl")).size == (500, 260)
