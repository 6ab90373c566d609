"""`darkroom remove`: what is named goes and stays out, and what nothing names goes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.generation import engine
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

runner = CliRunner()
KEY = TableKey(("samples",), "signs-0000")
LATER = TableKey(("direct", "drafts"), "signs-0000")


def said(*arguments: str, status: int = 0) -> str:
    result = runner.invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result.output


def unused(*arguments: str) -> set[str]:
    return set(re.findall(r"\b[0-9a-f]{64}\b", said("remove", "--unused", *arguments)))


def intake(workspace: Workspace) -> list[Sample]:
    engine.intake(workspace, Catalog(workspace.sources).open("signs"), 0, KEY.partition)
    return workspace.tables.read(KEY, Sample)


def later(workspace: Workspace) -> None:
    """A table below the samples."""
    workspace.tables.write(LATER, Trajectory, [], [], inputs="", facts={})


@pytest.fixture
def samples(workspace: Workspace, signs: Path) -> list[Sample]:
    rows = intake(workspace)
    later(workspace)
    return rows


def test_an_image_goes_with_its_samples_and_what_was_made_of_them(workspace: Workspace, samples: list[Sample]) -> None:
    image = samples[0].images[0]
    gone = {sample.sample_id for sample in samples if image in sample.images}
    assert "Nothing was changed" in said("remove", image.sha256)
    assert workspace.tables.read(KEY, Sample) == samples
    said("remove", image.sha256, "--yes")
    assert workspace.tables.read(KEY, Sample) == [sample for sample in samples if sample.sample_id not in gone]
    rejects = [reject for reject in workspace.tables.read_rejects(KEY) if reject.reason == "removed"]
    assert {reject.sample_id for reject in rejects} == gone
    assert not any(samples[0].question in reject.row for reject in rejects)
    facts = workspace.tables.facts(KEY)
    assert facts["n_in"] == facts["n_out"] + facts["n_rejected"] + facts["n_quarantined"]
    assert not workspace.tables.exists(LATER)
    assert unused("--days", "0") == {image.sha256}
    said("remove", "--unused", "--days", "0", "--yes")
    assert image.sha256 not in {sha256 for sha256, _, _ in workspace.images.files()}


def test_what_was_taken_down_does_not_come_back(workspace: Workspace, signs: Path, samples: list[Sample]) -> None:
    file = next(path for path in signs.iterdir() if path.name.endswith(".jpg"))
    row = samples[-1].source_row
    said("remove", str(file), f"signs:{row}", "--yes")
    said("remove", "--unused", "--days", "0", "--yes")
    stored = {sha256 for sha256, _, _ in workspace.images.files()}
    workspace.tables.path(KEY).unlink()
    read_again = intake(workspace)
    assert row not in {sample.source_row for sample in read_again}
    assert stored == {sha256 for sha256, _, _ in workspace.images.files()}
    assert "removed" in workspace.tables.facts(KEY)["reasons"]
    listed = (Path(workspace.home) / "removed.jsonl").read_text()
    said("remove", f"signs:{row}", "--yes")
    assert (Path(workspace.home) / "removed.jsonl").read_text() == listed


def test_an_image_that_intake_made_stays_out_by_its_own_digest(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "drawings"
    folder.mkdir()
    Image.effect_noise((64, 64), 80).convert("P").save(folder / "0.png")  # a palette: stored as another image
    (folder / "questions.jsonl").write_text(json.dumps({"image": "0.png", "question": "Which?", "answer": "This"}))
    said("ingest", str(folder), "--name", "drawings", "--license", "MIT")
    key = TableKey(("samples",), "drawings-0000")
    [sample] = workspace.tables.read(key, Sample)
    assert sample.images[0].parent
    said("remove", sample.images[0].sha256, "--yes")
    workspace.tables.path(key).unlink()
    engine.intake(workspace, Catalog(workspace.sources).open("drawings"), 0, key.partition)
    assert not workspace.tables.read(key, Sample)


def test_a_name_of_two_things_and_two_orders_at_once_are_refused(
    workspace: Workspace, samples: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "name what to remove" in said("remove", "signs", "--unused", "--yes", status=1)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "signs").write_bytes(b"a file")
    monkeypatch.chdir(tmp_path / "here")
    assert "a source and a file" in said("remove", "signs", "--yes", status=1)
    assert workspace.tables.read(KEY, Sample) == samples
    assert "0 samples" in said("remove", "./signs")


def test_a_source_goes_with_its_tables(workspace: Workspace, samples: list[Sample]) -> None:
    assert "signs.yaml, 2 tables" in said("remove", "signs")
    assert "Add --yes" in said("sources", "remove", "signs")  # as it was called
    assert workspace.tables.all_keys()
    said("remove", "signs", "--yes")
    assert not workspace.tables.all_keys()
    assert "signs" not in Catalog(workspace.sources).configs()
    images = {image.sha256 for sample in samples for image in sample.images}
    assert images <= unused("--days", "0")


def test_what_any_file_names_is_kept_and_what_is_new_waits(workspace: Workspace, samples: list[Sample]) -> None:
    images = [image.sha256 for image in {image.sha256: image for sample in samples for image in sample.images}.values()]
    said("remove", "signs", "--yes")
    assert not unused()  # all are from today
    note = Path(workspace.home) / "views" / "note.html"
    note.parent.mkdir()
    note.write_bytes(b"\xff" * ((1 << 24) - 30) + images[0].encode() + b"!")  # across two parts of the file
    assert images[0] not in unused("--days", "0")


def test_recorded_runs_keep_what_they_show_until_they_may_be_forgotten(
    workspace: Workspace, samples: list[Sample]
) -> None:
    shown = samples[0].images[0].sha256
    workspace.ledger.put("1", "sandbox", {"code": "show()"}, CachedCall({"images": [shown]}))
    workspace.ledger.put("2", "policy", {"messages": [shown]}, CachedCall({"text": "paid for"}))
    said("remove", "signs", "--yes")
    assert shown not in unused("--days", "0")
    assert "1 recorded runs deleted" in said("remove", "--unused", "--days", "0", "--runs", "--yes")
    assert workspace.ledger.get("1") is None
    assert workspace.ledger.get("2") is not None
    said("remove", shown, "--answers", "--yes")
    assert workspace.ledger.get("2") is None


@pytest.mark.parametrize("name", ["nonsense", "a" * 63, ":row", "signs:"])
def test_what_can_mean_nothing_is_refused(workspace: Workspace, samples: list[Sample], name: str) -> None:
    assert "is no source" in said("remove", "signs", name, "--yes", status=1)
    assert workspace.tables.read(KEY, Sample) == samples


def test_a_store_that_other_workspaces_may_use_is_left_alone(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARKROOM_IMAGES", str(tmp_path / "shared"))
    assert "--alone" in said("remove", "--unused", "--days", "0", status=1)
    assert "0 files" in said("remove", "--unused", "--days", "0", "--alone")
