"""Corrections on a real Label Studio: what builds on a submission goes with it, unless somebody has begun it."""

from __future__ import annotations

from typing import Any

import httpx

from darkroom.annotation.label_studio.server import LabelStudioServer
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotation.test_people import RunningCampaign, running_campaign
from tests.e2e.annotation.test_rounds import written
from tests.e2e.annotators import http_client, settled


def open_check(running: RunningCampaign, person: httpx.Client) -> dict[str, Any]:
    project = running.journal.project("cross_check")
    assert project is not None
    opened = {"id": "next_task", "project": project.project_id}
    return dict(person.post("/api/dm/actions", params=opened, json={}).json())


def test_a_correction_takes_back_the_check_that_nobody_has_begun_and_is_refused_afterwards(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    with running_campaign(server, workspace, name="slips") as running:
        terms = {"role": "annotator", "password": "a secret of theirs"}
        tokens = [running.studio.add_person(f"{name}@slips.example.com", **terms)["token"] for name in ("ann", "bob")]
        with http_client(running.url, tokens[0]) as author, http_client(running.url, tokens[1]) as checker:
            task = running.open_task(author)["id"]
            made = author.post(f"/api/tasks/{task}/annotations/", json={"result": written("A slip?")}).json()
            running.sync()
            path, body = f"/api/annotations/{made['id']}/", {"result": written("Which number?")}
            refused = author.patch(path, json={"result": written(" ")})
            assert refused.status_code == 403, "a rule is broken, and nothing was taken back"
            corrected = author.patch(path, json=body)
            assert corrected.status_code == 200, corrected.text[:300]
            assert open_check(running, checker).get("detail"), "the check with the slip is gone at once"
            running.sync()
            check = open_check(running, checker)
            assert "Which number?" in check["data"]["question_shown"].replace("\\", "")
            assert "base" not in check["data"]
            late = author.patch(path, json={"result": written("Too late?")})
            assert (late.status_code, "Somebody else has begun" in late.text) == (403, True)
            settled(checker, check, "12")
            running.sync()
            assert open_check(running, checker)["id"] == check["id"]
