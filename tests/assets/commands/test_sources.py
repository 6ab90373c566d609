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
    added = said("add", "mmk12", "--shards", "3")
    assert "Next:   darkroom rl mmk12" in added
    assert "licence" not in added
    config = Catalog(workspace.sources).configs()["mmk12"]
    assert (config.path, config.n_shards, config.split) == ("FanqingM/MMK12", 3, "train")
    (line,) = [line for line in said("list").splitlines() if line.startswith("mmk12")]
    assert line.rstrip().endswith("yes")


def test_a_downloaded_source_opens_from_its_folder(workspace: Workspace, downloaded: Path) -> None:
    assert "Its licence is not stated" in said("add", "visual_probe", "--path", str(downloaded))
    (row,) = Catalog(workspace.sources).open("visual_probe").rows(0)
    assert (row.question, row.answer) == ("What does the sign say?", "STOP")  # type: ignore[union-attr]


def test_what_was_added_is_never_overwritten(workspace: Workspace) -> None:
    said("add", "deepmath")
    file = workspace.sources / "deepmath.yaml"
    file.write_text(file.read_text() + "revision: main\n")
    assert "deepmath is added already" in said("add", "deepmath", status=1)
    assert "revision: main" in said("list", "deepmath")


def test_a_source_without_its_files_says_what_to_download() -> None:
    assert "hf download craigwu/seal_vqa_data" in said("add", "vstar", status=1)


def test_show_prints_the_bundled_file_with_its_citation() -> None:
    assert "arXiv 2503.07365" in said("list", "mmk12")
    assert "there is no public source 'none'" in said("list", "none", status=1)


def test_a_user_s_own_sources_are_listed_too(workspace: Workspace) -> None:
    workspace.sources.mkdir(parents=True)
    (workspace.sources / "mine.yaml").write_text("kind: parquet\npath: /data/mine\n")
    assert "mine" in said("list")


@pytest.mark.parametrize("width", [40, 80])
def test_every_name_can_be_copied_from_a_narrow_terminal(width: int) -> None:
    first = {line.split(" ")[0] for line in listed(width).splitlines()}
    assert set(public_sources()) <= first


@pytest.fixture
def questions(signs: Path) -> Path:
    """Rows of published columns: the third has no image, the fourth none that is there."""
    rows = [
        {"img": "0.jpg", "query": "What does it say?", "label": "STOP", "task": "sign", "bbox": [[350, 260, 400, 300]]},
        {"img": "1.jpg", "query": "What colour is it?", "label": "red", "task": "colour", "bbox": []},
        {"img": "nowhere.jpg", "query": "How many?", "label": "3", "task": "colour", "bbox": []},
    ]
    path = signs / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_check_says_what_becomes_of_the_rows_and_builds_nothing(questions: Path, workspace: Workspace) -> None:
    printed = said("check", str(questions))
    assert "3 rows: 2 samples, 1 not" in printed
    for expected in (
        "question: query",
        "answer: label",
        "images: img",
        "(350, 260, 400, 300) of image 1",
        "missing_image",
    ):
        assert expected in printed, expected
    crop = next(line for line in printed.splitlines() if line.lstrip().startswith("crop"))
    assert "1: it has no box in its first image" in crop
    page = (workspace.local / "views" / "rows.check.html").read_text()
    assert page.count("<template") >= 2
    assert "What does it say?" in page
    assert not workspace.tables.root.exists() or not workspace.tables.all_keys()
    assert set(Catalog(workspace.sources).configs()) == {"signs"}


def test_a_check_for_programs_is_json(questions: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    checked = json.loads(said("check", str(questions), "--rows", "2", "--json", "--out", str(page)))
    assert (checked["n_rows"], checked["n_samples"], checked["rejects"]) == (2, 2, {})
    assert page.is_file()
    families = {use["family"]: use for use in checked["families"]}
    assert families["direct"]["n_usable"] == 2
    assert families["crop"]["n_not_applicable"] == 1
    columns = {use["role"]: (use["columns"], use["n_filled"]) for use in checked["columns"]}
    assert columns["category"] == ("task", 2)


def test_a_mapping_of_the_users_own_is_checked_by_its_file(questions: Path, tmp_path: Path) -> None:
    mapping = tmp_path / "routed.yaml"
    columns = "{images: img, question: query, answer: label, category: {column: task, map: {sign: OCR}, default: math}}"
    mapping.write_text(f"kind: jsonl\npath: {questions.parent}\nquestions: rows.jsonl\ncolumns: {columns}\n")
    checked = json.loads(said("check", str(mapping), "--json"))
    families = {use["family"]: use["n_usable"] for use in checked["families"]}
    assert (families["math_code"], families["crop"]) == (1, 0)
    assert families["contrast"] == 1 or "likeness" in str(checked["families"])


def test_a_check_of_rows_of_which_none_becomes_a_sample_is_an_error(questions: Path) -> None:
    questions.write_text(json.dumps({"img": "nowhere.jpg", "query": "How many?", "label": "3"}))
    assert "none of the first 1 rows" in said("check", str(questions), status=1)


def test_ingest_proposes_shows_and_writes_the_mapping(questions: Path, workspace: Workspace) -> None:
    result = runner.invoke(app, ["ingest", str(questions), "--name", "rows", "--category", "query"])
    assert result.exit_code == 0, result.output
    columns = Catalog(workspace.sources).configs()["rows"].columns
    assert (columns.images, columns.question, columns.answer, columns.category) == ("img", "query", "label", "query")
    assert "question: query" in result.output
    assert "3 rows: 2 samples, 1 rejects" in result.output
    assert "rows.yaml" in said("remove", "rows", "--yes")
    assert set(Catalog(workspace.sources).configs()) == {"signs"}
    assert "'rows' is no source" in said("remove", "rows", status=1)
