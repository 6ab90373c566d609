"""`darkroom annotate record` and `take-in`: a campaign leaves one workspace and arrives in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from annotation.cli import app
from annotation.rounds.image_pool import POOL
from annotation.rounds.tables import read_accepted
from pipelines.records import PoolImage
from pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, Desk, accepts, record
from tests.annotation.recordings.test_format import large_image

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
    said = runner.invoke(app, ["record", str(out)])
    assert (said.exit_code, "1 images, 3 tasks" in said.output) == (0, True), said.output
    monkeypatch.setenv("DARKROOM_HOME", str(tmp_path / "other"))
    absent = runner.invoke(app, ["take-in", str(out)])
    assert "pool: 0 images, 1 rejected" in absent.output
    with Workspace.from_environment() as other:
        other.images.ingest(large_image())
        arrived = runner.invoke(app, ["take-in", str(out)])
        assert (arrived.exit_code, "accepted 1" in arrived.output) == (0, True), arrived.output
        assert [sample.answer for sample in read_accepted(other)] == ["42"]


def test_a_file_that_is_no_recording_is_a_message(tmp_path: Path) -> None:
    said = runner.invoke(app, ["take-in", str(tmp_path / "nowhere.json")])
    assert said.exit_code == 1
    assert not isinstance(said.exception, OSError)
