"""`darkroom annotate export` and `import`: a campaign leaves one workspace and arrives in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.accepted_source import read_accepted
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, Desk, accepts, record
from tests.annotation.recordings.test_format import large_image
from tests.command_lines import ANNOTATE as app

runner = CliRunner()


@pytest.fixture
def played(workspace: Workspace) -> None:
    item = PoolImage(workspace.images.ingest(large_image()), "ours", "a.jpg", "CC0-1.0")
    counts = {"n_in": 1, "n_out": 1, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0}
    workspace.tables.write(POOL, PoolImage, [item], [], inputs="", facts={**counts, "reasons": {}, "usage": {}})
    desk = Desk(workspace.annotation, item=item.image.sha256)
    (workspace.annotation / "campaign.yaml").write_text("name: test")
    desk.submit(desk.hand_out(), ANN, record("42"))
    desk.submit(desk.hand_out(), BOB, accepts())
    desk.submit(desk.hand_out(), EVE, accepts())


@pytest.mark.usefixtures("played")
def test_a_campaign_arrives_where_no_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.json"
    said = runner.invoke(app, ["export", str(out)])
    assert (said.exit_code, "1 images, 3 tasks" in said.output) == (0, True), said.output
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "other"))
    absent = runner.invoke(app, ["import", str(out)])
    assert "pool: 0 images, 1 rejected" in absent.output
    with Workspace.from_environment() as other:
        other.images.ingest(large_image())
        arrived = runner.invoke(app, ["import", str(out)])
        assert (arrived.exit_code, "accepted 1" in arrived.output) == (0, True), arrived.output
        assert [sample.answer for sample in read_accepted(other).samples] == ["42"]


def test_a_file_that_is_no_recording_is_a_message(tmp_path: Path) -> None:
    said = runner.invoke(app, ["import", str(tmp_path / "nowhere.json")])
    assert said.exit_code == 1
    assert not isinstance(said.exception, OSError)


@pytest.mark.usefixtures("played")
def test_payments_are_of_the_days_that_were_asked_for(workspace: Workspace) -> None:
    path = workspace.annotation / "payments.csv"
    said = runner.invoke(app, ["report", "--payments", "--since", "2026-05-01", "--until", "2026-05-02"])
    assert (said.exit_code, f"wrote {path}: 3 people" in said.output.replace("\n", "")) == (0, True), said.output
    assert path.read_text(encoding="utf-8-sig").splitlines()[1].startswith("ann@example.com,Ann,annotator,2026-05-01,")
    later = runner.invoke(app, ["report", "--payments", "--since", "2026-05-02"])
    assert "0 people" in later.output
    assert runner.invoke(app, ["report", "--payments", "--since", "May"]).exit_code == 2


@pytest.mark.usefixtures("played")
def test_the_guide_is_in_the_campaigns_language_or_the_one_asked_for(workspace: Workspace) -> None:
    (workspace.annotation / "campaign.yaml").write_text("language: de")
    assert "Anleitung für Annotierende" in runner.invoke(app, ["report", "--guide"]).output
    assert "标注员、检查员与专家指南" in runner.invoke(app, ["report", "--guide", "--language", "zh"]).output
    said = runner.invoke(app, ["report", "--guide", "--language", "xx"])
    assert (said.exit_code, "choose from en, de, es, zh" in said.output) == (2, True)


@pytest.mark.usefixtures("played")
def test_the_report_is_one_page(workspace: Workspace) -> None:
    assert runner.invoke(app, ["report"]).exit_code == 0
    assert "Over time" in (workspace.annotation / "report.html").read_text()


@pytest.mark.usefixtures("played")
def test_a_dry_run_needs_no_server_and_changes_nothing(workspace: Workspace) -> None:
    with Journal(workspace.annotation) as journal:
        before = journal.fingerprint
    said = runner.invoke(app, ["sync", "--dry-run"])
    assert (said.exit_code, "would hand out: nothing" in said.output) == (0, True), said.output
    assert "nothing was pulled or changed" in said.output
    with Journal(workspace.annotation) as journal:
        assert journal.fingerprint == before


def test_a_doctor_without_a_server_says_how_to_start_one(workspace: Workspace) -> None:
    said = runner.invoke(app, ["doctor"])
    assert said.exit_code == 1
    assert not isinstance(said.exception, AnnotationError)
