"""Charts in text: lengths and heights follow the numbers."""

from __future__ import annotations

from darkroom.pipelines.publishing.rendering import columns, sparkline, text_bars


def test_bars_are_as_long_as_their_counts() -> None:
    lines = text_bars({"a": 4, "b": 1, "c": 0}, shares=True).splitlines()[1:-1]
    assert [line.count("█") for line in lines] == [24, 6, 0]
    assert [line.rpartition(" ")[2] for line in lines] == ["(100%)", "(25%)", "(0%)"]


def test_a_column_above_zero_is_never_blank() -> None:
    assert columns({0: 1, 2: 100}, 3) == "▁ █ "


def test_a_sparkline_is_drawn_on_its_scale_and_thinned_to_its_width() -> None:
    assert sparkline([3.0, 2.0, 1.0]) == "█▅▁"
    assert sparkline([1.0, 2.0], scale=[1.0, 3.0]) == "▁▅"
    assert sparkline([1.0, 9.0, 2.0, 9.0], width=2) == "▁▂"
    assert sparkline([]) == ""
