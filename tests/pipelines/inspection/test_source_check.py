"""What `sources check` says of a source."""

import json

from PIL import Image

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.inspection.source_check import check_source
from darkroom.pipelines.sources.catalog import open_source
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.source_config import SourceConfig


def test_reasons_that_differ_in_measured_figures_are_counted_together(tmp_path, store):
    rows = []
    for number in range(3):
        Image.effect_noise((400, 300), 90).convert("RGB").save(tmp_path / f"{number}.png")
        box = [10, 10, 250 + 30 * number, 250]
        rows.append({"image": f"{number}.png", "question": f"Which sign {number}?", "answer": "a", "boxes": [box]})
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = Columns(boxes="boxes", box_frame="corners")
    source = open_source("signs", SourceConfig(kind="jsonl", path=str(tmp_path), columns=columns))
    (crop,) = check_source(source, columns, [load_recipes()["crop"]], store, n_rows=20).families
    assert crop.n_usable == 0
    assert list(crop.reasons.values()) == [3]
