"""`darkroom annotate export` and `import`: a campaign leaves one workspace and arrives in another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.annotation import AnnotationError
from darkroom.annotation.commands import campaign as commands
from darkroom.annotation.rounds.accepted_source import read_accepted
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.desk import ANN, BOB, EVE, Desk, accepts, record
from tests.annotation.recordings.test_format import large_image
from tests.command_lines import ANNOTATE as app
from tests.json_endpoint import ScriptedServer

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
def test_amounts_are_by_the_campaigns_rates(workspace: Workspace) -> None:
    (workspace.annotation / "campaign.yaml").write_text("name: test\nrates: {annotate: 1.25, record: 2}\ncurrency: USD")
    said = runner.invoke(app, ["report", "--payments", "--json"])
    amounts = {row["account"]: row["amount"] for row in json.loads(said.stdout)["people"]}
    assert amounts == {"ann@example.com": 3.25, "bob@example.com": 0, "eve@example.com": 0}
    lines = (workspace.annotation / "payments.csv").read_text(encoding="utf-8-sig").splitlines()
    assert (lines[0].split(",")[-1], lines[1].split(",")[-1]) == ("amount", "3.25")
    assert runner.invoke(app, ["export", str(workspace.annotation / "out.json")]).exit_code == 0
    assert "1.25" not in (workspace.annotation / "out.json").read_text(), "a recording does not tell what people earn"


@pytest.mark.usefixtures("played")
def test_the_report_is_one_page_and_its_figures_as_json(workspace: Workspace) -> None:
    (workspace.annotation / "campaign.yaml").write_text("name: test\nrates: {annotate: 1.25}")
    said = runner.invoke(app, ["report", "--json"])
    facts = json.loads(said.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    page = (workspace.annotation / "report.html").read_text()
    assert "Over time" in page
    assert facts["report"] == str(workspace.annotation / "report.html")
    assert (facts["n_accepted"], facts["n_waiting"], facts["waiting"]["accept"]) == (1, 0, 0)
    assert facts["blind"] == {"n": 2, "of": 2, "value": 1.0, "interval": [pytest.approx(0.3424, abs=1e-4), 1.0]}
    assert facts["cost"]["so_far"] == 1.25
    assert "1.25 EUR" in page
    assert facts["people"][0]["per_hour"] > 0
    assert facts["as_of"] == "2026-05-01T10:06:00Z"


@pytest.mark.usefixtures("played")
def test_a_report_that_is_written_again_and_again_is_followed_by_an_open_page(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        assert seconds == 30
        if pauses:
            raise KeyboardInterrupt
        pauses.append(seconds)
        (workspace.annotation / "report.html").unlink()

    pauses: list[float] = []
    monkeypatch.setattr(commands.time, "sleep", sleep)
    runner.invoke(app, ["report", "--every", "30"])
    assert pauses == [30]
    assert 'data-every="30.0"' in (workspace.annotation / "report.html").read_text()


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


def test_what_administrators_did_is_printed_page_by_page_or_as_json(server: ScriptedServer) -> None:
    act = {"at": "2026-05-01T10:00:00+00:00", "who": "admin@x", "request": "POST /darkroom/people", "status": 201}
    acts = [{"id": n, **act, "note": f"person{n}@x: expert"} for n in (1, 2)]
    server.answers = [(200, {"tasks": acts[:1], "next": 1}), (200, {"tasks": acts[1:], "next": None})] * 2
    lines = runner.invoke(app, ["report", "--audit"]).output.splitlines()
    assert lines[1] == "2026-05-01T10:00:00+00:00  admin@x  POST /darkroom/people  201  person2@x: expert"
    assert json.loads(runner.invoke(app, ["report", "--audit", "--json"]).output) == acts
    assert server.asked[0][2]["x-darkroom-user"], "who runs the command"


@pytest.mark.usefixtures("played")
def test_a_report_shows_who_practises_and_nothing_of_it_is_in_payments_or_figures(workspace: Workspace) -> None:
    before = json.loads(runner.invoke(app, ["report", "--json"]).output)
    paid = json.loads(runner.invoke(app, ["report", "--payments", "--json"]).output)["people"]
    (workspace.annotation / "campaign.yaml").write_text("name: test\npractice: example\n")
    tries = [
        {"campaign": "test", "number": n, "n_right": 2, "n": 5, "seconds": 60.0, "at": "2026-05-01"} for n in (1, 2)
    ]
    with Journal(workspace.annotation) as journal:
        [person] = [person for person in journal.people().values() if person.person_id == ANN]
        journal.set_practice([{"email": person.email, "practice": tries}])
    shown = json.loads(runner.invoke(app, ["report", "--json"]).output)
    assert json.loads(runner.invoke(app, ["report", "--payments", "--json"]).output)["people"] == paid
    [stuck] = [row for row in shown.pop("practice") if row["n_tries"]]
    assert before.pop("practice") == []
    assert shown == before
    assert (stuck["email"], stuck["state"], stuck["n_right"], stuck["n"]) == (person.email, "stuck", 2, 5)
    page = (workspace.annotation / "report.html").read_text()
    assert 'class="low">stuck: 2 of 5, try 2<' in page
