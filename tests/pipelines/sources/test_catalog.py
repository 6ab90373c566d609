"""Sources by name: what their files may say, and which partitions they are."""

from __future__ import annotations

import pytest

from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import Catalog, partition_key
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.jsonl import JsonLinesSource
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.sources.tabular import TabularSource


@pytest.fixture
def catalog(tmp_path):
    return Catalog(tmp_path / "sources")


def written(catalog: Catalog, text: str | bytes) -> Catalog:
    catalog.folder.mkdir()
    (catalog.folder / "streets.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return catalog


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "kind: Field required"),
        (
            "kind: xml\npath: /data",
            "kind: Input should be 'jsonl', 'parquet', 'csv', 'tsv', 'huggingface', 'trajectories'",
        ),
        ("kind: jsonl", "path: Field required"),
        ("kind: jsonl\npath: /data\nshards: 3", "shards: Extra inputs"),
        ("kind: jsonl\npath: /data\nn_shards: 0", "n_shards: Input should be greater than"),
        ("kind: jsonl\npath: /data\ncolumns: {picture: image}", "columns.picture: Extra inputs"),
        ("kind: jsonl\npath: /data\ncolumns: {qestion: q}", "did you mean 'question'"),
        ("kind: jsonl\npath: /data\ncolumns: {box_frame: yolo}", "columns.box_frame: Input should be"),
        ("kind: [jsonl", "is not YAML"),
        ("- kind", "Input should be a valid dictionary"),
        (b"\xff\xfe", "is not YAML"),
    ],
)
def test_a_wrong_file_names_the_field(catalog, text, said):
    with pytest.raises(SourceError) as caught:
        written(catalog, text).configs()
    assert said in str(caught.value)
    assert "streets.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "demo", "demo_rl", "Streets", "1st", "my-streets", "a/b", "../x", "straße", "a\n"]
)
def test_a_name_that_cannot_be_a_partition_is_refused(catalog, name):
    with pytest.raises(SourceError, match="a source is named in lower case"):
        catalog.add(name, SourceConfig(kind="jsonl", path="/data"))


def test_a_source_that_is_not_there_says_which_are(catalog):
    catalog.add("streets", SourceConfig(kind="parquet", path="/data"))
    with pytest.raises(SourceError, match="no source 'roads'; there are accepted_annotations, demo, demo_rl, streets"):
        catalog.open("roads")


def test_what_was_added_is_read_again(catalog):
    config = SourceConfig(kind="huggingface", path="a/b", columns=Columns(images="img", boxes="bb"), n_shards=3)
    catalog.add("streets", config)
    assert catalog.configs() == {"streets": config}
    assert [path.name for path in catalog.folder.iterdir()] == ["streets.yaml"]


def test_the_embedded_sources_are_always_there(catalog):
    assert [catalog.open(name).name for name in ("demo", "demo_rl")] == ["demo", "demo_rl"]
    assert catalog.configs() == {}
    assert list(catalog.partitions()) == ["demo-0000", "demo-0001", "demo_rl-0000"]


def test_partitions_are_the_shards_of_every_source(catalog):
    catalog.add("streets", SourceConfig(kind="jsonl", path="/data", n_shards=2))
    assert list(catalog.partitions().values())[3:] == [("streets", 0), ("streets", 1)]
    assert partition_key("streets", 3) == "streets-0003"


def test_every_kind_opens_its_source(catalog, tmp_path):
    (tmp_path / "metadata.jsonl").write_text("{}")
    (tmp_path / "questions.jsonl").write_text("{}")
    asked = str(tmp_path / "questions.jsonl")
    catalog.add("plain", SourceConfig(kind="jsonl", path=str(tmp_path)))
    catalog.add("asked", SourceConfig(kind="jsonl", path=str(tmp_path), questions=asked))
    catalog.add("files", SourceConfig(kind="parquet", path=str(tmp_path)))
    catalog.add("hub", SourceConfig(kind="huggingface", path="a/b", n_shards=4))
    kinds = {name: type(catalog.open(name)) for name in catalog.configs()}
    assert kinds == {"plain": JsonLinesSource, "asked": JsonLinesSource, "files": TabularSource, "hub": TabularSource}
    assert catalog.open("hub").n_shards == 4


def test_a_source_whose_files_are_gone_is_an_error_when_it_is_opened(catalog):
    catalog.add("streets", SourceConfig(kind="jsonl", path="/no/such/folder"))
    assert "streets-0000" in catalog.partitions()
    with pytest.raises(SourceError, match="there is no file"):
        catalog.open("streets")
