"""Rows with the columns of public datasets, written as the hub has them, and what intake made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
from datasets import Features, Value

from darkroom.pipelines.sources.ingest import Intake

TEXT = Value("string")


def write(path: Path, rows: list[dict[str, Any]], features: dict[str, Any]) -> None:
    """Parquet with the features that the hub's copy has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assert all(set(row) == set(features) for row in rows)
    datasets.Dataset.from_list(rows, features=Features(features)).to_parquet(path)


def reasons(intake: Intake) -> list[tuple[str, str]]:
    return [(reject.reason, reject.evidence) for reject in intake.rejects]
