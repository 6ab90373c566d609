"""The public sources: rows with exactly a dataset's columns go through its bundled file to samples or to rejects.

Columns are as in the comment of each file; nothing here asks a hub.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from datasets import Value

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import (
    Catalog,
    needs_folder,
    open_source,
    placed,
    public_file,
    public_source,
    public_sources,
)
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.sources.source_config import SourceConfig
from tests.matrices import every_nth
from tests.pipelines.sources.public_rows import TEXT, reasons, write

pytestmark = pytest.mark.usefixtures("offline")

# --- all of them


@pytest.mark.parametrize("name", public_sources())
def test_every_bundled_file_says_what_a_user_must_know(name):
    config = public_source(name)
    assert config.about is not None
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", config.about.hub)
    assert config.path == config.about.hub
    assert all((config.about.rows, config.about.asks, config.about.columns_from))
    assert "arXiv" in public_file(name)
    assert config.license or "licence" in config.about.remarks or "licen" not in config.about.remarks


@pytest.mark.parametrize("name", every_nth(public_sources(), 4))
def test_an_added_file_is_read_as_it_was_bundled(name, tmp_path):
    catalog = Catalog(tmp_path / "sources")
    config = placed(name, tmp_path, n_shards=2)
    catalog.add(name, config)
    assert catalog.configs() == {name: config}


def test_no_benchmark_is_a_source():
    hubs = {config.path for config in public_sources().values()}
    assert not hubs & {"craigwu/vstar_bench", "We-Math/We-Math", "We-Math/VTBench", "Mini-o3/VisualProbe_Hard"}
    assert "test" not in {config.split for config in public_sources().values()}


# --- what every table may have


def test_a_wrong_type_a_cut_off_image_and_an_index_out_of_range_are_rejects(tmp_path, store, struct, png):
    features = {
        "image": TEXT,
        "question": TEXT,
        "answer": Value("int64"),
        "options": {"A": TEXT, "B": TEXT, "C": TEXT},
        "rights": TEXT,
    }
    row = {
        "image": base64.b64encode(png()).decode(),
        "question": "?",
        "answer": 1,
        "options": {"A": "red", "B": "blue", "C": None},
        "rights": "CC0-1.0",
    }
    rows = [
        row,
        {**row, "image": row["image"][:-3]},
        {**row, "answer": 2},
        {**row, "options": {"A": "red", "B": None, "C": "blue"}},
    ]
    write(tmp_path / "a.parquet", rows, features)
    config = SourceConfig.model_validate(
        {
            "kind": "parquet",
            "path": str(tmp_path / "a.parquet"),
            "license": "MIT",
            "columns": {"choices": "options", "license": "rights"},
        }
    )
    intake = ingest_shard(open_source("mine", config), 0, store)
    (sample,) = intake.samples
    assert (sample.answer, sample.choices, sample.license) == ("B", ("A. red", "B. blue"), "CC0-1.0")
    found = reasons(intake)
    assert found[0][0] == "unreadable_image"
    assert found[0][1].startswith("column 'image': begins as base64 and is none")
    assert found[1:] == [
        ("malformed_row", "column 'answer': choice 2 of 2"),
        ("malformed_row", "column 'options': the choices' letters are A, C"),
    ]


# --- adding one


def test_a_source_whose_images_are_files_says_how_to_get_them():
    with pytest.raises(SourceError, match="hf download TIGER-Lab/PixelReasoner-RL-Data") as caught:
        placed("pixel_reasoner")
    assert "Unpack there: images.zip and videos.zip.\nThen: darkroom sources add pixel_reasoner --path FOLDER" in str(
        caught.value
    )
    assert {name for name, config in public_sources().items() if needs_folder(config)} == {
        "arxivqa",
        "deepeyes_calls",
        "gmai_reasoning",
        "llava_cot",
        "longvideo_reason",
        "mm_rlhf",
        "mmpr",
        "pixel_reasoner",
        "pixel_reasoner_sft",
        "spacer",
        "visual_probe",
        "vstar",
    }


def test_a_path_that_does_not_fit_is_an_error(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match="vstar: expected a folder, downloaded; there is none at"):
        placed("vstar", tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="mmk12: expected a folder or a parquet file"):
        placed("mmk12", tmp_path / "none")
    with pytest.raises(SourceError, match="no public source 'vstar_bench'; there are arxivqa"):
        placed("vstar_bench")


@pytest.mark.parametrize("name", public_sources())
def test_the_docs_say_of_every_public_source_what_its_file_says(name):
    config = public_source(name)
    assert config.about is not None
    page = (Path(__file__).parents[3] / "docs" / "public_sources.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    used = ", ".join(f"`{'/'.join(group)}`" for group in config.columns.needed())
    where, read = "files" if needs_folder(config) else "hub", "card" if config.about.on_card else "code"
    said = (
        config.about.hub,
        config.about.rows,
        used,
        config.license or "not stated",
        where,
        read,
        config.about.remarks,
    )
    assert [cell.strip() for cell in line.strip("| ").split(" | ")][1:] == list(said)
