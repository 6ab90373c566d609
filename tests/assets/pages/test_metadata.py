"""What the pages say of rejects."""

from __future__ import annotations

import shlex
from dataclasses import replace

from darkroom.assets.pages.metadata import explain_command, rejects_metadata
from darkroom.pipelines.records.reject_reasons import Reason, reject


def test_rejects_are_counted_as_they_come_each_reason_with_its_first_row() -> None:
    reasons = [Reason.DUPLICATE, Reason.STALE, Reason.DUPLICATE, Reason.DUPLICATE]
    stream = (reject(reason, f"{n}", stage="s", row={}, source_row=f"row/{n}") for n, reason in enumerate(reasons))
    table = rejects_metadata(stream)["rejects_by_reason"]
    shown = [(row.data["reason"], row.data["rows"], row.data["example"]) for row in table.records]
    assert shown == [("duplicate", 3, "row/0"), ("stale", 1, "row/1")]
    assert rejects_metadata(iter(())) == {}


def test_the_command_that_explains_a_reject_is_quoted_for_the_shell() -> None:
    for source_row in ("photo/cat", "a'; rm -rf ~ #"):
        rejected = replace(reject(Reason.STALE, "", stage="s", row={}, source_row=source_row), source="demo")
        assert shlex.split(explain_command(rejected)) == ["darkroom", "explain", f"demo:{source_row}"]
