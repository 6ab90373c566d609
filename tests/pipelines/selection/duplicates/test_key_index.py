"""The index on disk finds what a dict of all keys does, and holds no more of it than it is asked for."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.selection.duplicates import key_index
from darkroom.pipelines.selection.duplicates.key_index import FoundKeys, KeyIndex, MappedFile
from tests.matrices import fewer_quickly

_N_MANY = 1 << 23
PARTS = st.lists(st.lists(st.integers(0, 12), max_size=9), max_size=9)


def found_in(index: KeyIndex, keys: np.ndarray) -> FoundKeys:
    return FoundKeys(*map(np.concatenate, zip(*index.find_each(keys, most=_N_MANY), strict=True)))


@given(PARTS, st.sampled_from([1, 3, 128]), st.sampled_from([[], [1], [2, 1], [4, 2, 1]]))
@settings(max_examples=fewer_quickly(120), deadline=None)
def test_it_finds_all_items_of_a_key_whatever_was_merged(parts, piece, steps):
    expected: dict[int, list[int]] = defaultdict(list)
    n_items = 0
    with mock.patch.multiple(key_index, _PIECE=piece, _AT_ONCE=piece, _STEPS=steps, _STRIDE=1 + sum(steps)):
        index = KeyIndex(n_keys=100)
        for keys in parts:
            items = np.arange(n_items, n_items + len(keys), dtype=np.uint32)
            n_items += len(keys)
            index.add(np.array(keys, np.uint64) << np.uint64(40), items)
            for key, item in zip(keys, items.tolist(), strict=True):
                expected[key].append(item)
            found = found_in(index, np.arange(14, dtype=np.uint64) << np.uint64(40))
            pairs = sorted(zip(found.key.tolist(), found.item.tolist(), strict=True))
            assert pairs == sorted((key, item) for key, of_key in expected.items() for item in of_key)


def test_many_additions_leave_few_shelves():
    index = KeyIndex(n_keys=100)
    for begin in range(0, 640, 10):
        keys = np.arange(begin, begin + 10, dtype=np.uint64)
        index.add(keys, keys.astype(np.uint32))
    assert len(index._shelves) <= 7


def test_keys_of_many_items_are_left_out_where_asked():
    index = KeyIndex(n_keys=5)
    index.add(np.array([1, 1, 1, 2, 2], np.uint64), np.arange(5, dtype=np.uint32))
    (found,) = index.find_each(np.array([2, 1], np.uint64), most=2)
    assert (found.key.tolist(), found.item.tolist()) == ([0, 0], [3, 4])


def test_a_search_maps_little_of_a_large_file(tmp_path: Path, monkeypatch):
    index, mapped_mb = KeyIndex(tmp_path, n_keys=1), []
    keys = np.arange(_N_MANY, dtype=np.uint64) << np.uint64(40)
    index.add(keys, np.arange(_N_MANY, dtype=np.uint32))
    let_go = MappedFile.let_go
    monkeypatch.setattr(MappedFile, "let_go", lambda self: (mapped_mb.append(_mapped_mb()), let_go(self)))
    at_start = _mapped_mb()
    found = found_in(index, keys[:: _N_MANY // 4096])
    assert found.item.tolist() == list(range(0, _N_MANY, _N_MANY // 4096))
    index.add(keys + np.uint64(1), np.arange(_N_MANY, dtype=np.uint32))
    assert len(index._shelves) == 1  # merged
    assert max(mapped_mb) - at_start < 8 * _N_MANY / 1e6 / 2  # half of the keys


def _mapped_mb() -> float:
    """What this process has of files in memory."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1000


def test_its_files_have_no_name(tmp_path: Path):
    index = KeyIndex(tmp_path, n_keys=5)
    index.add(np.arange(5, dtype=np.uint64), np.arange(5, dtype=np.uint32))
    assert found_in(index, np.array([3], np.uint64)).item.tolist() == [3]
    assert not list(tmp_path.iterdir())
