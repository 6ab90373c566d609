"""`darkroom annotate users`: what it says; the server's part is in tests/e2e/annotation."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.pipelines.storage.workspace import Workspace
from tests.command_lines import ANNOTATE as app
from tests.json_endpoint import ScriptedServer

ACCOUNTS = [
    {"id": 1, "email": "admin@darkroom.local", "name": "admin", "role": "admin", "token": "x", "is_active": True},
    {"id": 2, "email": "ann@example.com", "name": "Ann", "role": "annotator", "token": "x", "is_active": True},
    {"id": 3, "email": "bob@example.com", "name": "Bob", "role": "annotator", "token": "x", "is_active": False},
]
runner = CliRunner()


def test_removed_accounts_are_listed_as_such(server: ScriptedServer) -> None:
    server.answers = [(200, {"people": ACCOUNTS})]
    said = runner.invoke(app, ["users", "list"], env={"COLUMNS": "120"})
    assert next(line for line in said.output.splitlines() if "removed" in line).split()[1] == "bob@example.com"


def test_the_list_says_how_far_everybody_is_with_practice(server: ScriptedServer) -> None:
    """Of this campaign; whoever never had to practise has nothing there."""
    tried = {"campaign": "annotation", "number": 1, "n_right": 4, "n": 5, "seconds": 60.0, "at": "2026-05-01"}
    server.answers = [(200, {"people": [ACCOUNTS[0], {**ACCOUNTS[1], "practice": [tried]}, ACCOUNTS[2]]})] * 2
    said = runner.invoke(app, ["users", "list"], env={"COLUMNS": "160"}).output
    assert "passed: 4 of 5, try 1" in next(line for line in said.splitlines() if "ann@example.com" in line)
    shown = json.loads(runner.invoke(app, ["users", "list", "--json"]).output)
    assert [row["practice"] for row in shown] == ["", "passed: 4 of 5, try 1", ""]


def test_a_team_that_becomes_too_small_is_told_so(server: ScriptedServer) -> None:
    left = [ACCOUNTS[0], {**ACCOUNTS[1], "is_active": False}, ACCOUNTS[2]]
    server.answers = [(200, {"people": ACCOUNTS}), (200, {"n_released": 2}), (200, {"people": left})]
    said = runner.invoke(app, ["users", "remove", "ANN@example.com"])
    assert said.exit_code == 0, said.output
    assert "ann@example.com: removed, 2 open tasks handed on" in said.output
    assert "too few: 0 annotators; this campaign needs at least 3" in said.output
    assert server.asked[1][0].endswith("/darkroom/people/remove")


@pytest.mark.parametrize("email", ["eve@example.com", "bob@example.com", "admin@darkroom.local"])
@pytest.mark.parametrize("command", ["remove", "password"])
def test_who_is_no_member_is_named_and_nothing_is_changed(server: ScriptedServer, command: str, email: str) -> None:
    server.answers = [(200, {"people": ACCOUNTS})]
    said = runner.invoke(app, ["users", command, email])
    assert said.exit_code == 1
    assert f"no annotator, checker or expert has the account {email}; there are ann@example.com" in said.output.replace(
        "\n", " "
    )
    assert [path.rpartition("/darkroom/")[2] for path, _, _ in server.asked] == ["people"]


def test_a_new_password_is_printed(server: ScriptedServer) -> None:
    server.answers = [(200, {"people": ACCOUNTS}), (200, {})]
    said = runner.invoke(app, ["users", "password", "ann@example.com"])
    assert said.output.startswith("ann@example.com: password "), said.output


def test_a_server_of_an_earlier_version_has_only_members(server: ScriptedServer) -> None:
    rows = [{name: value for name, value in row.items() if name != "is_active"} for row in ACCOUNTS]
    server.answers = [(200, {"people": rows})]
    assert "removed" not in runner.invoke(app, ["users", "list"]).output


def test_a_campaign_for_three_experts_hands_out_nothing_while_there_are_fewer(server: ScriptedServer) -> None:
    """Once tasks are out, people go on working, and the shortage is said."""
    with Workspace.from_environment() as workspace:
        workspace.annotation.mkdir(parents=True, exist_ok=True)
        (workspace.annotation / "campaign.yaml").write_text(
            "images: [{path: images, source: s, license: l}]\nmin_side: 1\nexperts_per_record: 3\n"
        )
        (workspace.annotation / "images").mkdir()
        Image.new("RGB", (64, 48), "red").save(workspace.annotation / "images" / "a.png")
    expert = {"id": 4, "email": "eve@example.com", "name": "Eve", "role": "expert", "token": "x", "is_active": True}
    server.answers = [(200, {"people": [*ACCOUNTS, expert]})]
    said = runner.invoke(app, ["sync"])
    assert said.exit_code == 1
    assert (
        "error: too few experts: 1 expert; this campaign needs at least 3 "
        "(`darkroom annotate users add EMAIL --role expert`)"
    ) in said.output
    assert [path.rpartition("/darkroom/")[2] for path, _, _ in server.asked] == ["people"], "nothing was handed out"
