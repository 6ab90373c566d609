"""Exports for other trainers, and released trajectory files, are audited as conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.inspection.audit import audit, find_conversations
from darkroom.pipelines.publishing.layouts import LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.sandbox.errors import UserError
from tests.pipelines.inspection.plain_rows import PlainPython
from tests.pipelines.sources import releases

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def python() -> Iterator[PlainPython]:
    with PlainPython() as started:
        yield started


@pytest.fixture
def exported(shipped: Path, tmp_path: Path):
    def write(layout: str) -> Path:
        folder = tmp_path / layout
        export(find_source("crop", shipped.parent, split="train"), LAYOUTS[layout], folder)
        return folder

    return write


@pytest.mark.parametrize("layout", ["llama_factory", "ms_swift", "ms_swift_inline"])
def test_an_export_is_read_back_executed_and_checked(exported, python, layout):
    conversations = find_conversations(exported(layout), None)
    report = audit(conversations, execute=python.execute)
    assert report.kinds == {}
    assert (report.n_rows, report.n_executed, report.n_images) == (4, 4, 4)
    assert report.checked["hint_stays_hidden"] == report.checked["no_round_is_broken"] == 4


def test_what_was_changed_in_an_export_is_found_at_its_line(exported, python):
    folder = exported("ms_swift")
    (path,) = folder.glob("train*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[0]["images"][1] = records[0]["images"][0]
    turn = records[1]["messages"][2]
    turn["content"] = turn["content"].replace("<think>", "<think>I was told that it is there. ")
    records[2]["messages"].pop()
    path.write_text("\n".join([*map(json.dumps, records), "no JSON"]))
    report = audit(find_conversations(folder, None), execute=python.execute)
    found = {(finding.row.removeprefix(path.name), finding.kind) for finding in report.findings}
    assert found >= {
        (":1", "replay"),
        (":2", "check: hint_stays_hidden"),
        (":3", "unreadable: malformed_row"),
        (":5", "unreadable: malformed_row"),
    }
    assert {row for row, _ in found} == {"", ":1", ":2", ":3", ":5"}, "the first is the file, by its manifest"


def test_a_released_file_is_audited_by_its_mapping(tmp_path, python):
    path = releases.write(tmp_path, releases.THYME)
    report = audit(find_conversations(path, "thyme_sft"), execute=python.execute)
    assert report.kinds["replay"] == 4
    assert sum(n for kind, n in report.kinds.items() if kind.startswith("unreadable")) == len(releases.THYME_REASONS)
    assert report.kinds["check: hint_stays_hidden"] == 1
    said = CliRunner().invoke(app, ["audit", str(path), "--mapping", "thyme_sft", "--limit", "2"])
    assert (said.exit_code, "0 findings" in said.output) == (0, True), said.output


def test_a_mapping_file_of_ones_own_is_read(tmp_path, python):
    path = releases.write(tmp_path, releases.THYME[:1])
    mapping = tmp_path / "mine.yaml"
    mapping.write_text("{kind: trajectories, path: x, columns: {transcript: {column: response, dialect: thyme}}}")
    assert audit(find_conversations(path, str(mapping)), execute=python.execute).n_findings == 0


def test_code_about_a_video_is_not_measured_in_a_conversation(tmp_path, python):
    row = releases.computing_row()
    row["response"] = row["response"].replace("print(6 * 7)", "print(len(video_clue_0))")
    path = releases.write(tmp_path, [row])
    report = audit(find_conversations(path, "thyme_sft"), execute=python.execute)
    assert (report.n_findings, report.n_executed, list(report.not_measured)) == (
        0,
        0,
        ["execution: the code reads a video, and conversations hold none"],
    )


def test_what_cannot_be_read_is_named(exported, tmp_path):
    of_another_trainer = exported("verl_sft")
    with pytest.raises(UserError, match="only files and rows are compared"):
        audit(find_conversations(of_another_trainer, None), parts=["replay"])
    (of_another_trainer / "MANIFEST").unlink()
    with pytest.raises(UserError, match=r"export for verl_sft.* which is not there"):
        find_conversations(of_another_trainer, None)
    with pytest.raises(UserError, match="kind jsonl"):
        find_conversations(tmp_path, "arxivqa")
    assert find_conversations(tmp_path, None) is None
    (tmp_path / ".darkroom.json").write_text('{"layout": "ms_sw')
    with pytest.raises(UserError, match="cannot be read"):
        find_conversations(tmp_path, None)
    assert CliRunner().invoke(app, ["audit", str(tmp_path), "--mapping", "arxivqa"]).exit_code == 2
