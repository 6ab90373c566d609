"""A fixed portion of what `make fuzz` runs without an end: random code, files and replies."""

from collections.abc import Iterator

import pytest

from tests.sandbox.fuzz import Bench, fuzz, open_bench


@pytest.fixture(scope="module")
def bench(full_tier: None) -> Iterator[Bench]:
    with open_bench() as bench:
        yield bench


@pytest.mark.parametrize(("part", "n_cases"), [("code", 24), ("files", 24), ("replies", 16)])
def test_a_portion_of_the_fuzzer_finds_nothing(bench: Bench, part: str, n_cases: int) -> None:
    bench.counts.clear()
    assert [finding for _, finding in fuzz(bench, part, range(n_cases), seed=23) if finding is not None] == []
    assert len(bench.counts) > 1  # the cases are not all of one kind
