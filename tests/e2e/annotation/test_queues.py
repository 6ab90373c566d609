"""Queues of single verdicts on a real Label Studio: reviews, verification, whether a drawing would help."""

from __future__ import annotations

import shutil
from pathlib import Path

from darkroom.annotation.label_studio.server import (
    TOKEN,
    URL,
    LabelStudioServer,
    connect,
)
from darkroom.annotation.queues.table_queues import CHECK, ReviewQueue, SuitabilityQueue, VerificationQueue
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Sample, Trajectory, Truth
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.judges.calibration import read_labels
from tests.e2e.annotators import choice, http_client, text


def test_experts_verdicts_on_trajectories_come_back_as_a_check(
    server: LabelStudioServer, crop_home: Path, workspace: Workspace
) -> None:
    shutil.copytree(crop_home, workspace.home)
    started = server.find()
    assert started is not None
    environment = {URL: started.url, TOKEN: server.admin.token}
    recipe = load_recipes()["crop"]
    with Journal(workspace.annotation) as journal, connect(workspace, environment) as studio:
        made = studio.add_person("reviewer@example.com", role="expert", password="a secret of the reviewer")
        queue = ReviewQueue(workspace, Campaign(name="reviews"), journal)
        assert queue.sync(studio, [recipe], n_rows=2) == 2
        assert queue.sync(studio, [recipe], n_rows=2) == 0, "nothing goes out twice"
        known = journal.project("review")
        assert known is not None
        with http_client(started.url, made["token"]) as client:
            for result in ([choice("verdict", "accept")], [choice("verdict", "reject"), choice("reason", "leaks")]):
                task = client.post("/api/dm/actions", params={"id": "next_task", "project": known[0]}, json={}).json()
                assert "What does sign number" in task["data"]["page"]
                said = client.post(f"/api/tasks/{task['id']}/annotations/", json={"result": result, "lead_time": 9.0})
                assert said.status_code == 201
        queue.sync(studio, [recipe], n_rows=2)
        assert queue.materialize([recipe])["crop"].n_out == 2
    before = workspace.tables.n_rows(TableKey(("crop", "trajectories"), "small-0000"))
    report, shipped = SftDataset(workspace, recipe, ["small-0000"]).publish()
    assert (report.n_out, report.reasons["check_failed: expert_review"]) == (before - 1, 1)
    rows = workspace.tables.read(report.key, Trajectory)
    assert [check.passed for row in rows for check in row.checks if check.name == "expert_review"] == [True]
    assert (
        "Experts looked at 2 rows, chosen by a seed, and accept 1: 50 %" in (shipped.folder / "README.md").read_text()
    )


def test_people_verify_the_rows_of_a_source(server: LabelStudioServer, crop_home: Path, workspace: Workspace) -> None:
    shutil.copytree(crop_home, workspace.home)
    started = server.find()
    assert started is not None
    with (
        Journal(workspace.annotation) as journal,
        connect(workspace, {URL: started.url, TOKEN: server.admin.token}) as studio,
    ):
        made = studio.add_person("verifier@example.com", role="annotator", password="a secret of the verifier")
        queue = VerificationQueue(workspace, Campaign(name="public"), journal, "small")
        assert queue.sync(studio, n_rows=2) == 2
        assert queue.sync(studio, n_rows=3) == 1, "a larger sample keeps the smaller one"
        known = journal.project("verify")
        assert known is not None
        with http_client(started.url, made["token"]) as client:
            for chosen in ("match", "mismatch"):
                task = client.post("/api/dm/actions", params={"id": "next_task", "project": known[0]}, json={}).json()
                assert "What does sign number" in task["data"]["question_shown"]
                body = {"result": [choice("match", chosen)], "lead_time": 3.0}
                assert client.post(f"/api/tasks/{task['id']}/annotations/", json=body).status_code == 201
        queue.sync(studio, n_rows=3)
        assert queue.materialize().n_out == 2
        assert queue.counts() == {"match": 1, "mismatch": 1}


def test_people_say_whether_a_drawing_would_help_and_see_no_answer(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    question = "Tom walks {} km north, then east. How far is home?"
    problems = [
        Sample(f"p{n}", "sums", str(n), "", (), question.format(n), (), "Answer", Truth(), "maths") for n in range(3)
    ]
    facts = {"n_in": 3, "n_out": 3, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "reasons": {}, "usage": {}}
    workspace.tables.write(TableKey(SAMPLES, "sums-0000"), Sample, problems, [], inputs="x", facts=facts)
    started = server.find()
    assert started is not None
    with (
        Journal(workspace.annotation) as journal,
        connect(workspace, {URL: started.url, TOKEN: server.admin.token}) as studio,
    ):
        made = studio.add_person("drawer@example.com", role="annotator", password="a secret of the drawer")
        queue = SuitabilityQueue(workspace, Campaign(name="drawings"), journal, "sums")
        assert queue.sync(studio, n_rows=3) == 3
        known = journal.project("suitability")
        assert known is not None
        with http_client(started.url, made["token"]) as client:
            for said in ("yes", "no", "unsure"):
                task = client.post("/api/dm/actions", params={"id": "next_task", "project": known[0]}, json={}).json()
                assert "Tom walks" in task["data"]["page"]
                assert "Answer" not in str(task["data"])
                body = {"result": [choice("helps", said), text("comment", "a map")], "lead_time": 3.0}
                assert client.post(f"/api/tasks/{task['id']}/annotations/", json=body).status_code == 201
        queue.sync(studio, n_rows=3)
        assert queue.materialize().n_out == 3
        assert queue.counts() == {"yes": 1, "no": 1, "unsure": 1}
    labels = read_labels(workspace.annotation / "suitability.jsonl", CHECK)
    assert sorted(label.line.verdict for label in labels.labels) == ["accept", "reject"]
