"""The index on disk finds what a dict of all keys does, and holds no more of it than it is asked for."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from darkroom.pipelines.selection.duplicates import key_index
from darkroom.pipelines.selection.duplicates.key_index import (
    FoundKeys,
    KeyIndex,
    MappedFile,
    expanded,
    mixed,
    pairs_once,
)
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


@pytest.mark.parametrize(("n_before", "n_added", "shelves"), [(2, 1, [3]), (3, 1, [3, 1]), (5, 2, [5, 2]), (4, 2, [6])])
def test_a_shelf_of_at_most_twice_the_size_is_merged(n_before: int, n_added: int, shelves: list[int]):
    index = KeyIndex(n_keys=100)
    for n in (n_before, n_added):
        index.add(np.arange(n, dtype=np.uint64), np.arange(n, dtype=np.uint32))
    assert [len(shelf) for shelf in index._shelves] == shelves


def test_of_keys_that_are_not_there_few_are_looked_for(monkeypatch: pytest.MonkeyPatch):
    keys = np.random.default_rng(0).integers(0, 2**63, 2000, dtype=np.uint64)
    index, looked_for = KeyIndex(n_keys=1000), []
    index.add(keys[:1000], np.arange(1000, dtype=np.uint32))
    find = key_index._KeyShelf.find
    monkeypatch.setattr(key_index._KeyShelf, "find", lambda *given: looked_for.append(len(given[1])) or find(*given))
    assert sorted(found_in(index, keys).key.tolist()) == list(range(1000))
    assert 1000 <= looked_for[0] < 1000 + 1000 / 11


@pytest.mark.parametrize(
    ("n_keys", "n_bytes"), [(0, 2), (1, 2), (2, 4), (3, 8), (100, 256), (1 << 24, 1 << 25), (1 << 30, 1 << 25)]
)
def test_it_has_two_bytes_of_memory_for_a_key_and_32_megabytes_at_most(n_keys: int, n_bytes: int):
    assert len(KeyIndex(n_keys=n_keys)._there) == n_bytes


def test_keys_are_mixed_as_splitmix64_does():
    """The first outputs of the generator with the seed 0 (Steele et al., 2014)."""
    states = np.array([1, 2, 3], np.uint64)
    outputs = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mixed(states, np.zeros(3, np.uint64)).tolist() == outputs
    golden = np.array([0x9E3779B97F4A7C15], np.uint64)
    assert mixed(np.zeros(1, np.uint64), golden).tolist() == outputs[:1]


@pytest.mark.parametrize(
    ("starts", "ends", "which", "places"),
    [
        ([], [], [], []),
        ([5], [5], [], []),
        ([5, 0, 9], [7, 0, 12], [0, 0, 2, 2, 2], [5, 6, 9, 10, 11]),
        ([3, 1], [4, 3], [0, 1, 1], [3, 1, 2]),
    ],
)
def test_ranges_are_written_out(starts, ends, which, places):
    written = expanded(np.array(starts, np.int64), np.array(ends, np.int64))
    assert [part.tolist() for part in written] == [which, places]


def test_pairs_are_there_once_in_order_with_how_often():
    first, second = np.array([4, 0, 4, 4, 0]), np.array([1, 7, 1, 0, 7])
    assert [part.tolist() for part in pairs_once(first, second)] == [[0, 4, 4], [7, 0, 1], [2, 1, 2]]
    assert [part.tolist() for part in pairs_once(first[:0], second[:0])] == [[], [], []]
    assert [part.tolist() for part in pairs_once(np.array([3]), np.array([0]))] == [[3], [0], [1]]


def test_a_file_holds_what_was_appended_and_nothing_of_nothing(tmp_path: Path):
    file = MappedFile(tmp_path)
    assert file.array(np.uint32).tolist() == []
    file.append(np.array([], np.uint32))
    assert file.array(np.uint32).tolist() == []
    file.append(np.array([[1, 2], [3, 4]], np.uint32).T)
    file.append(np.array([9], np.uint32))
    for _ in range(2):
        assert file.array(np.uint32).tolist() == [1, 3, 2, 4, 9]
        file.let_go()
