"""Charts are images, the same for the same figures, whatever the figures and names are."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from darkroom.pipelines.inspection import charts
from darkroom.pipelines.inspection.charts import histogram, mix


def size(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png)) as image:
        image.load()
        return image.size


@pytest.mark.parametrize("counts", [{}, {0: 5}, {8: 1, 3: 100_000}])
def test_a_histogram_is_the_same_image_every_time(counts):
    first, second = (histogram(counts, top=8, title="Rows by votes of 8", marked=[8]) for _ in range(2))
    assert first == second
    assert size(first)[0] == 720


def test_what_is_marked_has_another_colour():
    plain, marked = (histogram({3: 7}, top=8, title="Rows", marked=places) for places in ([], [3]))
    assert plain != marked


@pytest.mark.parametrize(
    "groups", [{"category": {"$x_1$": 3, "": 1}}, {"a": {"b": 1}, "c": {"d": 2, "e": 0}}, {"a": {}}]
)
def test_a_mix_takes_any_name_and_any_group(groups):
    assert size(mix(groups, title="$rows$"))[0] == 720


def test_a_mix_grows_with_its_bars():
    small, large = (size(mix({"a": {str(n): n for n in range(k)}}, title="t"))[1] for k in (3, 30))
    assert large > 3 * small


def test_a_mix_of_no_rows_counts_from_zero(monkeypatch):
    monkeypatch.setattr(charts, "png", lambda figure: figure)
    (axes,) = mix({"a": {"b": 0}}, title="t").axes
    assert axes.get_xlim()[0] == 0
    assert [tick for tick in axes.get_xticks() if 0 <= tick <= 1] == [0, 1]
