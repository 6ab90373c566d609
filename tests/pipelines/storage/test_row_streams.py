"""Rows that are not held in memory: read again, or on disk."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipelines.records import Truth, TruthBox
from pipelines.storage.row_streams import RowSpill, RowStream


def test_a_stream_gives_its_rows_each_time_and_knows_how_many() -> None:
    rows = RowStream(3, lambda: iter("abc"))
    assert [list(rows), list(rows), len(rows)] == [["a", "b", "c"], ["a", "b", "c"], 3]
    assert "b" in rows
    assert "d" not in rows


@given(st.lists(st.integers(0, 10_000), max_size=20), st.randoms())
def test_rows_on_disk_are_found_in_any_order(tmp_path_factory, numbers, random) -> None:
    spill = RowSpill(tmp_path_factory.getbasetemp() / "spill")
    rows = [Truth((TruthBox("sign" * number, 0, 0, number, number),), angle=number / 3) for number in numbers]
    begins = [spill.add(row) for row in rows]
    order = list(range(len(rows)))
    random.shuffle(order)
    assert [spill.read(begins[place]) for place in order] == [rows[place] for place in order]


def test_nothing_is_left_of_rows_on_disk(tmp_path: Path) -> None:
    spill = RowSpill(tmp_path / "home")
    spill.add("a row")
    assert list((tmp_path / "home").iterdir()) == []
