"""Rollouts for other programs: a table that no spreadsheet computes."""

import csv
import io

import pytest

from darkroom.pipelines.inspection.pages import spreadsheet_cell
from darkroom.train.evaluation.output import COLUMNS, export
from darkroom.train.evaluation.settings import ExportFormat
from tests.train.evaluation.conftest import exported


@pytest.fixture
def table(tmp_path):
    folder = exported(tmp_path)
    export(folder, [ExportFormat.CSV])
    with (folder / "rollouts.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


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
    cell = spreadsheet_cell(f'{begin}HYPERLINK("http://x","y")')
    assert cell == f'\'{begin}HYPERLINK("http://x","y")'


def test_a_plain_text_stays_as_it_is_and_a_number_too():
    assert spreadsheet_cell("a = b") == "a = b"
    assert spreadsheet_cell(-0.5) == "-0.5"
    assert spreadsheet_cell(None) == ""


def test_no_cell_is_longer_than_a_spreadsheet_holds():
    assert len(spreadsheet_cell("=" * 40_000)) == 32_767
    assert spreadsheet_cell("a\0b") == "ab"


def test_quotes_and_lines_do_not_leave_their_cell(tmp_path):
    text = 'said "red",\n"=1+1"'
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow([spreadsheet_cell(text)])
    assert next(csv.reader(io.StringIO(written.getvalue(), newline=""))) == [text]


def test_the_same_evaluation_gives_the_same_bytes(tmp_path):
    folder = exported(tmp_path)
    export(folder, list(ExportFormat))
    first = (folder / "rollouts.csv").read_bytes()
    export(folder, list(ExportFormat))
    assert (folder / "rollouts.csv").read_bytes() == first
