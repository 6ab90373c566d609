"""A selection knows of every row whether it ships, and of the others in which order and why they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.publishing.row_selection import Selection
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.selection.sampling import Candidate, Strata
from darkroom.pipelines.storage.stage_runs import RejectKind

SAMPLE = bare_sample("a", "What is it?", source="photos", license="CC0-1.0 AND MIT")
ALIKE = RowError(Reason.NEAR_DUPLICATE, "a near b")


@pytest.fixture
def selection() -> Selection:
    """``a`` and ``b`` ship, a second ``a`` does not."""
    selection = Selection(ships_unlicensed=False)
    for row_id in ("a", "b", "a"):
        selection.add(row_id, SAMPLE, duplicate="again")
    return selection


@pytest.mark.parametrize("license", ["", "unknown", "Not stated", "CC0-1.0 AND unknown"])
def test_a_row_of_unknown_licence_ships_by_the_setting_alone(license: str) -> None:
    selections = [Selection(ships_unlicensed=ships) for ships in (False, True)]
    for selection in selections:
        selection.add("a", replace(SAMPLE, license=license), duplicate="again")
        selection.add("a", SAMPLE, duplicate="again")
    assert [selection.mask.tolist() for selection in selections] == [[False, True], [True, False]]
    [(_, cause)] = selections[0].rejections()
    assert cause.reason == Reason.LICENCE_UNKNOWN
    assert cause.evidence.startswith("photos states no licence: state `license` in the source's file")


def test_rows_have_the_positions_in_which_they_came(selection: Selection) -> None:
    assert [selection.place(row_id) for row_id in ("a", "b", "c")] == [0, 1, None]
    assert (selection.n_in, selection.n_rows) == (3, 2)
    assert selection.mask.tolist() == [True, True, False]


def test_rejects_come_in_the_order_in_which_they_were_rejected(selection: Selection) -> None:
    selection.reject(RowError(Reason.STALE, "gone"))
    selection.drop("b", ALIKE)
    strata = Strata()
    strata.add(Candidate("a"), 0)
    selection.fill_quota(strata, 0, of="the quota")
    found = [(place, cause.reason.value, cause.evidence) for place, cause in selection.rejections()]
    assert found == [
        (2, "duplicate", "again"),
        (3, "stale", "gone"),
        (1, "near_duplicate", "a near b"),
        (0, "not_selected", "the quota is 0 rows, and others were selected"),
    ]
    assert selection.n_rows == 0


def test_rejects_are_counted_by_reason_and_check(selection: Selection) -> None:
    selection.drop("a", RowError(Reason.CHECK_FAILED, "no"), check="executes")
    assert selection.counts == {
        RejectKind("duplicate", "", "rejected"): 1,
        RejectKind("check_failed", "executes", "rejected"): 1,
    }


def test_a_row_that_does_not_ship_cannot_be_dropped(selection: Selection) -> None:
    selection.drop("b", ALIKE)
    for row_id in ("b", "unknown"):
        with pytest.raises(KeyError, match=row_id):
            selection.drop(row_id, ALIKE)
