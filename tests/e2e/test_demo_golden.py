"""The demo's rows are those of the declared versions: a change of rows without a version would mix old and new ones."""

from __future__ import annotations

import json
from pathlib import Path

from darkroom.pipelines.storage.stage_runs import VERSIONS
from tests.golden_rows import complaint, read_golden, rows_of


def test_rows_change_with_versions_only(undisturbed: tuple[Path, str]) -> None:
    golden, versions = read_golden(), json.loads(VERSIONS.read_text())
    assert versions == golden.versions, "write golden_rows.json anew: python -m tests.golden_rows HOME"
    assert complaint(golden, versions, rows_of(undisturbed[0])) == ""
