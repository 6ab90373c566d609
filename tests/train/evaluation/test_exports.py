"""Rollouts for other programs: a table that no spreadsheet computes, and a log of Inspect."""

import base64
import csv
import io
import json
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.train.evaluation.exports import COLUMNS, export, safe_cell
from darkroom.train.evaluation.settings import ExportFormat
from tests.train.evaluation.conftest import TARGET, desert, exported


@pytest.fixture
def table(tmp_path):
    folder, store = exported(tmp_path)
    export(folder, [ExportFormat.CSV], store)
    with (folder / "rollouts.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def log(tmp_path):
    """The log's files by name."""
    folder, store = exported(tmp_path)
    export(folder, [ExportFormat.INSPECT], store)
    with ZipFile(folder / "rollouts.eval") as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_every_rollout_is_a_row_of_the_table(table):
    assert tuple(table[0]) == COLUMNS
    assert [row["id"] for row in table] == ["a", "b", "c"]
    assert [row["correct"] for row in table] == ["True", "False", "True"]
    assert [row["code_ran"] for row in table] == ["True", "False", "False"]
    assert [row["rounds"] for row in table] == ["1", "1", "0"]
    assert [row["images_shown"] for row in table] == ["1", "0", "0"]
    assert table[2]["error"] == "policy_failed"


def test_an_answer_that_a_spreadsheet_would_compute_is_escaped(table):
    assert table[1]["answer"] == "'=1+1"


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "  ="])
def test_no_cell_begins_as_a_formula(begin):
    cell = safe_cell(f'{begin}HYPERLINK("http://x","y")')
    assert cell == f'\'{begin}HYPERLINK("http://x","y")'


def test_a_plain_text_stays_as_it_is_and_a_number_too():
    assert safe_cell("a = b") == "a = b"
    assert safe_cell(-0.5) == "-0.5"
    assert safe_cell(None) == ""


def test_no_cell_is_longer_than_a_spreadsheet_holds():
    assert len(safe_cell("=" * 40_000)) == 32_767
    assert safe_cell("a\0b") == "ab"


def test_quotes_and_lines_do_not_leave_their_cell(tmp_path):
    text = 'said "red",\n"=1+1"'
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow([safe_cell(text)])
    assert next(csv.reader(io.StringIO(written.getvalue(), newline=""))) == [text]


def test_the_log_has_a_sample_for_every_rollout_and_what_they_score(log):
    samples = [log[f"samples/bench:{name}_epoch_1.json"] for name in "abc"]
    assert [sample["id"] for sample in samples] == log["header.json"]["eval"]["dataset"]["sample_ids"]
    assert [sample["scores"]["right"]["value"] for sample in samples[:2]] == ["C", "I"]
    assert "scores" not in samples[2]
    assert samples[2]["error"]["message"] == "policy_failed: why"
    assert [summary["epoch"] for summary in log["summaries.json"]] == [1, 1, 1]
    header = log["header.json"]
    assert header["status"] == "error"  # a rollout was lost
    assert header["results"]["completed_samples"] == 2
    assert header["results"]["scores"][0]["metrics"]["bench"]["value"] == 0.5


def test_the_log_shows_the_very_images(log):
    sample = log["samples/bench:a_epoch_1.json"]
    question, call, observation, answer = sample["messages"]
    assert [part["type"] for part in question["content"]] == ["image", "text"]
    assert call["tool_calls"][0]["arguments"]["code"].startswith("image.crop")
    url = sample["attachments"][observation["content"][0]["image"].removeprefix("attachment://")]
    pixels = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert np.array_equal(np.asarray(pixels), np.asarray(desert().crop(TARGET)))
    assert answer["content"].endswith("red")
    assert log["samples/bench:b_epoch_1.json"]["messages"][2]["error"]["message"] == "error"


def test_the_same_evaluation_gives_the_same_bytes(tmp_path):
    folder, store = exported(tmp_path)
    export(folder, list(ExportFormat), store)
    first = [(folder / name).read_bytes() for name in ("rollouts.csv", "rollouts.eval")]
    export(folder, list(ExportFormat), store)
    assert [(folder / name).read_bytes() for name in ("rollouts.csv", "rollouts.eval")] == first


def test_a_log_that_cannot_be_finished_leaves_the_earlier_one(tmp_path):
    folder, store = exported(tmp_path)
    export(folder, [ExportFormat.INSPECT], store)
    before = (folder / "rollouts.eval").read_bytes()
    with pytest.raises(ImageMissing):
        export(folder, [ExportFormat.INSPECT], ImageStore(str(tmp_path / "empty")))
    assert (folder / "rollouts.eval").read_bytes() == before
    assert not list(folder.glob(".*"))
