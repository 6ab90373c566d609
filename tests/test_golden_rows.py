"""Rows and versions go together."""

from __future__ import annotations

import pytest

from tests.golden_rows import Golden, complaint

GOLDEN = Golden({"a": 1, "b": 2}, {"crop/drafts": "x", "crop/runs": "y"}, {})


@pytest.mark.parametrize(
    ("versions", "rows", "reason", "said"),
    [
        ({}, {}, "", ""),
        ({}, {"crop/runs": "z"}, "", "the rows of crop/runs changed: raise the versions"),
        ({"a": 2}, {"crop/runs": "z"}, "", ""),
        ({"a": 2}, {}, "", "versions of a were raised, and no row of the demo changed"),
        ({"a": 2}, {}, "endpoints' answers are read otherwise", ""),
        ({}, {"figure/runs": "w"}, "", "the rows of figure/runs changed"),
    ],
)
def test_rows_change_with_a_version_and_a_version_with_rows_or_a_reason(
    versions: dict[str, int], rows: dict[str, str], reason: str, said: str
) -> None:
    found = complaint(GOLDEN, {**GOLDEN.versions, **versions}, {**GOLDEN.rows, **rows}, reason)
    assert found.startswith(said)
    assert bool(found) == bool(said)
