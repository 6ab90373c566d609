"""A folder of images, rows about them as a mapping reads them, and public sources on a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.catalog import open_source, public_source
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.ingest import Intake, ingest_shard
from darkroom.pipelines.sources.mapping import map_row

EVERYTHING = Columns(choices="choices", boxes="boxes", category="category")


@pytest.fixture
def folder(tmp_path, make_image, encoded):
    inside = tmp_path / "images"
    (inside / "deep").mkdir(parents=True)
    (inside / "sign.png").write_bytes(encoded(make_image()))
    (inside / "deep" / "sign.png").write_bytes(encoded(make_image()))
    (tmp_path / "secret.png").write_bytes(encoded(make_image(1)))
    return inside


@pytest.fixture
def mapped(folder):
    """A row with an image, a question and an answer, and what is changed about it."""

    def map_one(columns: Columns = EVERYTHING, **changes: object) -> SourceRow | BadRow:
        row = {"image": "sign.png", "question": "Which colour?", "answer": "red", **changes}
        kept = {name: value for name, value in row.items() if value is not ...}
        (source_row,) = map_row(kept, columns, where="streets.jsonl:7", folder=folder, license="CC0-1.0")
        return source_row

    return map_one


@pytest.fixture
def refused(mapped):
    def refuse(columns: Columns = EVERYTHING, **changes: object) -> BadRow:
        row = mapped(columns, **changes)
        assert isinstance(row, BadRow)
        assert row.row == "streets.jsonl:7"
        return row

    return refuse


@pytest.fixture
def png(make_image, encoded) -> Callable[[int], bytes]:
    return lambda seed=0: encoded(make_image(seed))


@pytest.fixture
def struct(png) -> Callable[[int], dict[str, Any]]:
    return lambda seed=0: {"bytes": png(seed), "path": f"{seed}.png"}


@pytest.fixture
def taken(tmp_path, store) -> Callable[..., Intake]:
    """The bundled source on a downloaded folder, through intake."""

    def take(name: str, folder: Path = tmp_path, **changes: Any) -> Intake:
        config = public_source(name).model_copy(update={"path": str(folder), **changes})
        return ingest_shard(open_source(name, config), 0, store)

    return take
