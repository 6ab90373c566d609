"""Progress in words: what is done, how fast, how long it will take, what it will cost."""

from __future__ import annotations

import pytest

from pipelines.progress import Pace, Stand


def words(stand: Stand, seconds: float) -> str:
    times = iter([0.0, seconds])
    return Pace(lambda: next(times)).words(stand)


@pytest.mark.parametrize(
    ("stand", "seconds", "said"),
    [
        (
            Stand(2400, 10_000, 1.2),
            60,
            "2,400 of 10,000 rows (24%), 40.0 a second, about 3 min left; $1.20 so far, about $5.00 in all",
        ),
        (Stand(10, 20), 5, "10 of 20 rows (50%), 2.0 a second, about 5 s left"),
        (Stand(1, 100_001, 0.0), 1, "1 of 100,001 rows (0%), 1.0 a second, about 27.8 h left"),
        (Stand(7, 7, 0.5), 7, "7 of 7 rows (100%), 1.0 a second; $0.50 so far, about $0.50 in all"),
        (Stand(0, 0), 0, "0 of 0 rows (100%), 0.0 a second"),
    ],
)
def test_a_stand_in_words(stand, seconds, said):
    assert words(stand, seconds) == said
