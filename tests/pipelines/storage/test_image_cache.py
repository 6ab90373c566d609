"""The local copy of a remote image store: bounded, checked, shared by processes."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.images import ImageCache

KB = 1000


def data(n: int) -> bytes:
    return bytes([n]) * KB


def held(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*/*")}


def put(cache: ImageCache, n: int) -> str:
    sha256 = digest_bytes(data(n))
    cache.put(sha256, data(n))
    return sha256


def used(cache: ImageCache, sha256: str, *, at: int) -> None:
    os.utime(cache.folder / sha256[:2] / sha256, (at, at))


@pytest.fixture
def cache(tmp_path: Path) -> ImageCache:
    return ImageCache(tmp_path / "cache", 20 * KB)


def test_what_is_put_is_got(cache):
    sha256 = put(cache, 1)
    assert cache.get(sha256) == data(1)
    assert cache.get(digest_bytes(b"other")) is None


def test_the_longest_unused_goes_first(cache):
    kept = [put(cache, n) for n in range(20)]
    for n, sha256 in enumerate(kept):
        used(cache, sha256, at=n + 1)
    cache.get(kept[0])
    added = put(cache, 20)
    assert held(cache.folder) == {*kept, added} - {kept[1]}


def test_a_file_that_was_changed_is_not_given_out(cache):
    sha256 = put(cache, 1)
    path = cache.folder / sha256[:2] / sha256
    path.write_bytes(b"half")
    assert cache.get(sha256) is None
    assert not path.exists()


def test_what_is_too_large_for_it_is_not_kept(cache):
    large = bytes(2 * KB)
    cache.put(digest_bytes(large), large)
    assert not cache.folder.exists()


def test_what_a_killed_process_left_goes_too(cache):
    kept = put(cache, 1)
    orphan = cache.folder / kept[:2] / ".part"
    orphan.write_bytes(bytes(20 * KB))
    used(cache, kept, at=10)
    os.utime(orphan, (1, 1))
    put(cache, 2)
    assert not orphan.exists()
    assert len(held(cache.folder)) == 2


def fill(folder: Path, begin: int) -> int:
    """Puts 100 files and reads each once; how many it read were whole."""
    cache = ImageCache(folder, 20 * KB)
    n_whole = 0
    for n in range(begin, begin + 100):
        sha256 = put(cache, n % 150)
        found = cache.get(sha256)  # None where the other process evicted it
        assert found in (None, data(n % 150))
        n_whole += found is not None
    return n_whole


@pytest.mark.soak
def test_processes_share_it_and_its_bound(tmp_path):
    folder = tmp_path / "cache"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        n_whole = sum(processes.map(fill, [folder, folder], [0, 75]))
    assert n_whole > 0
    names = [name for name in held(folder) if not name.startswith(".")]
    assert len(names) <= 22  # 20, and a twentieth more for each process
    assert all(digest_bytes((folder / name[:2] / name).read_bytes()) == name for name in names)
