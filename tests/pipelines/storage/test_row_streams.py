"""Rows that are not held in memory: read again, or on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from unittest import mock

from hypothesis import given, strategies as st

from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.storage import row_files
from darkroom.pipelines.storage.row_files import KeyedSpill, RowSpill, RowStream


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


@given(st.lists(st.integers(2**64 - 9, 2**64 - 1) | st.integers(0, 9)), st.sampled_from([1, 2, 5, 100]))
def test_of_rows_with_a_key_the_last_one_is_found(tmp_path_factory, keys, n_unsorted) -> None:
    spill, last = KeyedSpill(tmp_path_factory.getbasetemp() / "spill"), dict[int, int]()
    with mock.patch.object(row_files, "_UNSORTED", n_unsorted):
        for number, key in enumerate(keys):
            spill.add(key, number)
            last[key] = number
            assert {each: spill.get(each) for each in (*range(10), *last)} == dict.fromkeys(range(10)) | last


def test_little_of_rows_with_keys_is_in_memory(tmp_path: Path) -> None:
    spill, n_rows = KeyedSpill(tmp_path), 40_000
    tracemalloc.start()
    try:
        for key in range(n_rows):
            spill.add(key << 40, "a row")
        assert tracemalloc.get_traced_memory()[0] < 60 * n_rows  # a dict has 130 of each
    finally:
        tracemalloc.stop()
