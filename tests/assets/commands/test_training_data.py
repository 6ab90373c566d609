"""`darkroom inspect-mask` and `darkroom audit --only encoding`: what a user types, and what they read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from darkroom.assets.cli import app

os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from darkroom.train.tiny import build

    folder = tmp_path_factory.mktemp("models") / "tiny"
    build(folder, arch="qwen3_vl")
    return folder


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_row_of_a_family_is_shown_with_what_is_trained_of_it(shipped: Path, model: Path) -> None:
    result = run("inspect-mask", "crop", "--model", model, "--row", 1)
    assert result.exit_code == 0, result.output
    assert "(last_round, layout turns): crop, 1 rounds, thyme; read for tiny" in result.output
    assert "⟦<think>" in result.output
    assert "</answer><|im_end|>⟧" in result.output


def test_a_row_is_written_as_a_page(shipped: Path, model: Path, tmp_path: Path) -> None:
    result = run("inspect-mask", "crop", "--model", model, "--layout", "inline", "--out", tmp_path / "a" / "row.html")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a" / "row.html").read_text().count("data:image/png") == 2


def test_a_row_that_is_not_there_is_named(shipped: Path, model: Path) -> None:
    result = run("inspect-mask", "crop", "--model", model, "--row", 99)
    assert result.exit_code == 1
    assert "error: no row 99" in result.output


def test_what_is_wrong_is_said_before_the_model_s_libraries_are_imported(shipped: Path, tmp_path: Path) -> None:
    words = ["inspect-mask", "crop", "--model", str(tmp_path), "--row", "99"]
    code = f"import sys\nfrom darkroom.assets.cli import app\ntry:\n    app({words})\n"
    code += "finally:\n    print({'torch', 'transformers'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "no row 99" in ended.stderr
    assert ended.stdout == "set()\n"


def test_a_dataset_that_conforms_is_checked_with_status_0(shipped: Path, model: Path, tmp_path: Path) -> None:
    result = run("audit", "crop", "--only", "encoding", "--model", model, "--out", tmp_path / "rows.jsonl")
    assert result.exit_code == 0, result.output
    assert "all conform" in result.output
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["verdict"] for row in rows} == {"conforms"}
    assert all(row["n_images"] == 2 and row["n_image_tokens"] > 0 for row in rows)


def test_a_row_that_does_not_conform_ends_with_status_1_its_reason(shipped: Path, model: Path) -> None:
    result = run("audit", shipped, "--only", "encoding", "--model", model, "--max-tokens", 10, "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert list(report["kinds"]) == ["encoding: truncated"]
    assert report["findings"][0]["reason"].startswith("it has")


def test_a_report_of_another_format_is_refused_before_any_work(tmp_path: Path) -> None:
    result = run("audit", "morse", "--only", "encoding", "--model", tmp_path, "--out", tmp_path / "rows.txt")
    assert result.exit_code == 2
    assert "--out writes .jsonl or .parquet" in result.output


def test_a_family_or_a_model_that_is_not_there_is_a_message(shipped: Path, model: Path, tmp_path: Path) -> None:
    for words in (("morse", "--model", model), ("crop", "--model", tmp_path)):
        result = run("audit", words[0], "--only", "encoding", *words[1:])
        assert result.exit_code == 2
        assert result.output.startswith("error: ")
