"""`darkroom sources`: what is known, adding one, looking at one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.assets.commands.sources import sources_table
from darkroom.pipelines.sources.catalog import Catalog, public_sources
from darkroom.pipelines.storage.workspace import Workspace

runner = CliRunner()


def said(*arguments: str, status: int = 0) -> str:
    result = runner.invoke(app, ["sources", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture
def downloaded(tmp_path: Path, image_bytes: bytes) -> Path:
    folder = tmp_path / "VisualProbe_train"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "1.jpg").write_bytes(image_bytes)
    row = {
        "images": ["VisualProbe_train/data/1.jpg"],
        "doc_id": "1",
        "problem": "<image>\nWhat does the sign say?",
        "solution": "STOP",
        "data_source": "visual_probe_train",
    }
    (folder / "train.json").write_text(json.dumps([row]))
    return folder


@pytest.fixture
def image_bytes(signs: Path) -> bytes:
    return (signs / "0.jpg").read_bytes()


def listed(width: int) -> str:
    """The list on a terminal so wide: the command's own is as wide as where the tests run."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(sources_table(public_sources(), {}, width=width), highlight=False)
    return console.export_text()


@pytest.mark.parametrize("width", [40, 60, 79, 80])
def test_a_narrow_terminal_breaks_no_word_of_the_list(width: int) -> None:
    words = {word for listed_word in listed(width).split() for word in (listed_word, listed_word.rstrip(";"))}
    asked = {word for config in public_sources().values() if config.about for word in config.about.asks.split()}
    assert {word for word in asked if len(word) < 14} <= words


def test_the_list_names_every_public_source_with_its_hub_name_and_licence() -> None:
    lines = listed(200).splitlines()
    for name, config in public_sources().items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert config.path in line
        assert (config.license or "not stated") in line


def test_a_source_is_added_under_its_hub_name_and_listed_as_added(workspace: Workspace) -> None:
    assert "Next:   darkroom rl mmk12" in said("add", "mmk12", "--shards", "3")
    config = Catalog(workspace.sources).configs()["mmk12"]
    assert (config.path, config.n_shards, config.split) == ("FanqingM/MMK12", 3, "train")
    (line,) = [line for line in said("list").splitlines() if line.startswith("mmk12")]
    assert line.rstrip().endswith("yes")


def test_a_downloaded_source_opens_from_its_folder(workspace: Workspace, downloaded: Path) -> None:
    said("add", "visual_probe", "--path", str(downloaded))
    (row,) = Catalog(workspace.sources).open("visual_probe").rows(0)
    assert (row.question, row.answer) == ("What does the sign say?", "STOP")  # type: ignore[union-attr]


def test_what_was_added_is_never_overwritten(workspace: Workspace) -> None:
    said("add", "deepmath")
    file = workspace.sources / "deepmath.yaml"
    file.write_text(file.read_text() + "revision: main\n")
    assert "deepmath is added already" in said("add", "deepmath", status=1)
    assert "revision: main" in said("show", "deepmath")


def test_a_source_without_its_files_says_what_to_download() -> None:
    assert "hf download craigwu/seal_vqa_data" in said("add", "vstar", status=1)


def test_show_prints_the_bundled_file_with_its_citation() -> None:
    assert "arXiv 2503.07365" in said("show", "mmk12")
    assert "there is no public source 'none'" in said("show", "none", status=1)


def test_a_user_s_own_sources_are_listed_too(workspace: Workspace) -> None:
    workspace.sources.mkdir(parents=True)
    (workspace.sources / "mine.yaml").write_text("kind: parquet\npath: /data/mine\n")
    assert "mine" in said("list")


@pytest.mark.parametrize("width", [40, 80])
def test_every_name_can_be_copied_from_a_narrow_terminal(width: int) -> None:
    first = {line.split(" ")[0] for line in listed(width).splitlines()}
    assert set(public_sources()) <= first
