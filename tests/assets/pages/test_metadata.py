"""What the pages say of rejects."""

from __future__ import annotations

from assets.pages.metadata import rejects_metadata
from pipelines.records.reject_reasons import Reason, reject


def test_rejects_are_counted_as_they_come_each_reason_with_its_first_row() -> None:
    reasons = [Reason.DUPLICATE, Reason.STALE, Reason.DUPLICATE, Reason.DUPLICATE]
    stream = (reject(reason, f"{n}", stage="s", row={}, source_row=f"row/{n}") for n, reason in enumerate(reasons))
    table = rejects_metadata(stream)["rejects_by_reason"]
    shown = [(row.data["reason"], row.data["rows"], row.data["example"]) for row in table.records]
    assert shown == [("duplicate", 3, "row/0"), ("stale", 1, "row/1")]
    assert rejects_metadata(iter(())) == {}
