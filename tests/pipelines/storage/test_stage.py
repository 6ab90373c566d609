"""Rows at work: in order, a few at a time, and stopped in a way that loses nothing."""

from __future__ import annotations

import asyncio

import pytest

from darkroom.pipelines.storage.stage_runs import Pace, StageProgress, map_rows


def test_results_are_in_the_rows_order():
    async def perform(n: int) -> int:
        await asyncio.sleep(0.001 * (5 - n))
        return n * n

    assert asyncio.run(map_rows(range(5), perform, concurrency=5)) == [0, 1, 4, 9, 16]


def test_a_stop_lets_no_further_row_begin_and_finishes_those_that_have():
    begun: list[int] = []
    finished: list[int] = []

    async def perform(n: int) -> None:
        begun.append(n)
        await asyncio.sleep(0)
        if n == 2:
            raise OSError("no disk")
        await asyncio.sleep(0.01)
        finished.append(n)

    with pytest.raises(OSError, match="no disk"):
        asyncio.run(map_rows(range(20), perform, concurrency=4))
    assert begun == [0, 1, 2, 3]
    assert finished == [0, 1, 3]


def test_the_first_error_is_the_one_that_is_raised():
    async def perform(n: int) -> None:
        await asyncio.sleep(0.01 * n)
        raise ValueError(n)

    with pytest.raises(ValueError, match=r"^0$"):
        asyncio.run(map_rows(range(3), perform, concurrency=3))


@pytest.mark.parametrize("n_rows", [3, 50, 5000])
def test_no_more_tasks_are_there_than_rows_are_worked_on(n_rows):
    n_tasks: set[int] = set()

    async def perform(n: int) -> None:
        n_tasks.add(len(asyncio.all_tasks()))
        await asyncio.sleep(0)

    asyncio.run(map_rows(range(n_rows), perform, concurrency=8))
    assert max(n_tasks) <= 8 + 1  # and the one that waits for them


def test_no_further_row_is_taken_before_there_is_a_place_for_it():
    taken: list[int] = []
    finished: list[int] = []

    class Rows(list[int]):
        def __iter__(self):
            for n in range(len(self)):
                taken.append(n)
                assert len(taken) - len(finished) <= 4
                yield n

    async def perform(n: int) -> None:
        await asyncio.sleep(0.001 * (n % 3))
        finished.append(n)

    asyncio.run(map_rows(Rows(range(40)), perform, concurrency=4))
    assert taken == sorted(finished)


def words(stand: StageProgress, seconds: float) -> str:
    times = iter([0.0, seconds])
    return Pace(lambda: next(times)).words(stand)


@pytest.mark.parametrize(
    ("stand", "seconds", "said"),
    [
        (
            StageProgress(2400, 10_000, 1.2),
            60,
            "2,400 of 10,000 rows (24%), 40.0 a second, about 3 min left; $1.20 so far, about $5.00 in all",
        ),
        (StageProgress(10, 20), 5, "10 of 20 rows (50%), 2.0 a second, about 5 s left"),
        (StageProgress(1, 100_001, 0.0), 1, "1 of 100,001 rows (0%), 1.0 a second, about 27.8 h left"),
        (StageProgress(7, 7, 0.5), 7, "7 of 7 rows (100%), 1.0 a second; $0.50 so far, about $0.50 in all"),
        (StageProgress(0, 0), 0, "0 of 0 rows (100%), 0.0 a second"),
    ],
)
def test_a_stand_in_words(stand, seconds, said):
    assert words(stand, seconds) == said
