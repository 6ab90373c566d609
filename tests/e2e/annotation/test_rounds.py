"""Rounds that go wrong on a real Label Studio: deleted projects, people who leave, experts who disagree, tampering."""

from __future__ import annotations

from typing import Any

import dagster as dg
import httpx
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.server import (
    TOKEN,
    URL,
    LabelStudioServer,
    connect,
    find_task_url,
)
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import AnnotationStages
from darkroom.assets.graph.annotation import annotation_sync
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.command_lines import ANNOTATE as app
from tests.e2e.annotation.studio import logs_in, run_darkroom, tables_of
from tests.e2e.annotators import SMALL, boxes, choice, http_client, question_of, text

OTHER_FORM = '<View><Image name="image" value="$image"/></View>'


def small_pool(workspace: Workspace) -> list[PoolImage]:
    """Three images that nobody needs to see."""
    pool = [PoolImage(ImageRef(letter * 64, 4000, 3000, "RGB", "JPEG"), "ours", letter, "CC0-1.0") for letter in "abc"]
    facts = {"n_in": 3, "n_out": 3, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "reasons": {}, "usage": {}}
    workspace.tables.write(POOL, PoolImage, pool, [], inputs="x", facts=facts)
    return pool


def test_a_project_that_was_deleted_and_a_form_that_was_changed_are_said_and_mended(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    started, pool = server.find(), small_pool(workspace)
    assert started is not None
    environment = {URL: started.url, TOKEN: server.admin.token}
    with (
        Journal(workspace.annotation) as journal,
        connect(workspace, environment) as studio,
        http_client(started.url, server.admin.token) as admin,
    ):
        sync = Sync(journal, studio, Campaign(name="mishaps"), say=lambda text: None)
        assert sync.run(pool) == {"annotate": 3}
        known = journal.project("annotate")
        assert known is not None
        assert admin.patch(f"/api/projects/{known[0]}/", json={"label_config": OTHER_FORM}).status_code == 200
        with pytest.raises(AnnotationError, match="--reset-forms"):
            sync.run(pool)
        assert sync.run(pool, reset_forms=True) == {}
        assert admin.delete(f"/api/projects/{known[0]}/").status_code == 204
        with pytest.raises(AnnotationError, match="--recreate"):
            sync.run(pool)
        assert sync.run(pool, recreate=True) == {"annotate": 3}
        assert sync.run(pool) == {}


def test_who_leaves_in_the_middle_of_a_round_hands_their_task_on_and_may_come_back(
    server: LabelStudioServer, workspace: Workspace, clean_environment: dict[str, str]
) -> None:
    started, pool = server.find(), small_pool(workspace)
    assert started is not None
    secret, headers = "a secret of theirs", {}
    environment = {**clean_environment, URL: started.url, TOKEN: server.admin.token}
    with (
        Journal(workspace.annotation) as journal,
        connect(workspace, {URL: started.url, TOKEN: server.admin.token}) as studio,
        http_client(started.url) as client,
    ):
        sync = Sync(journal, studio, Campaign(name="leaving"), say=lambda text: None)
        sync.run(pool)
        known = journal.project("annotate")
        assert known is not None
        for name in ("leaver", "stayer"):
            made = studio.add_person(f"{name}@example.com", role="annotator", password=secret)
            headers[name] = {"Authorization": f"Token {made['token']}"}

        def next_task(name: str) -> httpx.Response:
            ask = {"id": "next_task", "project": known.project_id}
            return client.post("/api/dm/actions", params=ask, json={}, headers=headers[name])

        record = [
            *boxes((4000, 3000), SMALL),
            *(choice("category", "ocr"), text("question", question_of(0)), text("answer", "EXIT 7")),
        ]
        written = f"/api/tasks/{next_task('leaver').json()['id']}/annotations/"
        submitted = client.post(written, json={"result": record, "lead_time": 9.0}, headers=headers["leaver"])
        assert submitted.status_code == 201, submitted.text[:300]
        first, second = next_task("leaver").json()["id"], next_task("stayer").json()["id"]
        assert second != first, "a task that somebody has open is nobody else's"
        said = run_darkroom(environment, "annotate", "users", "remove", "Leaver@example.com")
        assert "leaver@example.com: removed, 1 open task handed on" in said
        assert next_task("leaver").status_code in (401, 403)
        assert not logs_in(started.url, "leaver@example.com", secret)
        answer = client.post(
            f"/api/tasks/{second}/annotations/", json={"result": [], "was_cancelled": True}, headers=headers["stayer"]
        )
        assert answer.status_code == 201
        assert next_task("stayer").json()["id"] == first
        assert sync.run(pool) == {"cross_check": 1}, "what was submitted counts"
        assert {p.email: p.role for p in journal.people().values()}["leaver@example.com"] == "annotator"
        assert "removed" in run_darkroom(environment, "annotate", "users", "list")
        said = run_darkroom(
            environment, "annotate", "users", "add", "leaver@example.com", "--password", "another secret"
        )
        assert "leaver@example.com: annotator, password another secret" in said
        run_darkroom(environment, "annotate", "users", "password", "stayer@example.com", "--password", "a third secret")
    assert logs_in(started.url, "leaver@example.com", "another secret")
    assert logs_in(started.url, "stayer@example.com", "a third secret")
    assert not logs_in(started.url, "stayer@example.com", secret)
    with pytest.raises(AssertionError, match="no annotator, checker or expert has the account nobody"):
        run_darkroom(environment, "annotate", "users", "remove", "nobody@example.com")


def test_three_experts_judge_each_record_one_disagrees_and_one_leaves(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    started, pool = server.find(), small_pool(workspace)
    assert started is not None
    campaign = Campaign(name="panel", gold_share=0, experts_per_record=3, checked_twice=1)
    roles = {
        "writer": "annotator",
        "second": "annotator",
        "marker": "checker",
        **dict.fromkeys(("yes", "nay", "goer", "heir"), "expert"),
    }
    with (
        Journal(workspace.annotation) as journal,
        connect(workspace, {URL: started.url, TOKEN: server.admin.token}) as studio,
        http_client(started.url) as client,
    ):
        sync = Sync(journal, studio, campaign, say=lambda text: None)
        sync.run(pool)
        tokens = {
            name: studio.add_person(f"{name}@panel.example.com", role=role, password="a secret of theirs")["token"]
            for name, role in roles.items()
        }

        def take(name: str, round: str) -> httpx.Response:
            project = journal.project(round)
            assert project is not None
            ask, headers = (
                {"id": "next_task", "project": project.project_id},
                {"Authorization": f"Token {tokens[name]}"},
            )
            return client.post("/api/dm/actions", params=ask, json={}, headers=headers)

        def submit(name: str, task: dict[str, Any], result: list[dict[str, Any]]) -> None:
            headers, body = {"Authorization": f"Token {tokens[name]}"}, {"result": result, "lead_time": 9.0}
            said = client.post(f"/api/tasks/{task['id']}/annotations/", json=body, headers=headers)
            assert said.status_code == 201, said.text[:300]

        check = [text("blind_answer", "42"), choice("verdict", "accept"), written()[0]]
        reject = [choice("verdict", "reject"), choice("reason", "ambiguous")]
        for _ in pool:
            submit("writer", take("writer", "annotate").json(), written())
        assert sync.run(pool) == {"cross_check": 3}
        assert take("marker", "annotate").status_code == 403, "a checker never writes"
        assert take("writer", "cross_check").status_code == 404, "nobody checks an own record"
        for name in ("marker", "second"):
            assert sync.run(pool) == {}, "one of two has checked them"
            for _ in pool:
                task, headers = take(name, "cross_check").json(), {"Authorization": f"Token {tokens[name]}"}
                answer = f"/darkroom/tasks/{task['id']}/answer"
                assert client.post(answer, json={"answer": "42"}, headers=headers).is_success
                submit(name, task, check)
            assert take(name, "cross_check").status_code == 404, "nobody checks a record twice"
        assert sync.run(pool) == {"accept": 3}
        for name in ("yes", "nay", "goer"):
            seen = []
            for n in range(2 if name == "goer" else 3):
                task = take(name, "accept").json()
                seen.append(task["id"])
                assert task["annotations"] == [], "nobody sees another's verdict"
                submit(name, task, reject if name == "nay" or (name == "goer" and n == 1) else check[1:])
            assert len(set(seen)) == len(seen), "nobody gets a record twice"
        assert take("yes", "accept").status_code == 404
        last = take("goer", "accept").json()["id"]
        assert take("heir", "accept").status_code == 404, "its third place is taken while somebody has it open"
        assert sync.run(pool) == {"rework": 1}, "two of three sent it back; the last record waits"
        assert studio.remove_person("goer@panel.example.com") == 1
        assert [take("heir", "accept").json()["id"], take("nay", "accept").status_code] == [last, 404]
        submit("heir", {"id": last}, check[1:])
        assert take("heir", "accept").status_code == 404, "the others have their three verdicts"
        sync.run(pool)
        states = [
            row.state
            for row in AnnotationStages(workspace, campaign, journal, find_task_url(workspace, {})).read().records
        ]
    assert sorted((state.stage, state.round) for state in states) == [
        ("accepted", "accept"),
        ("accepted", "accept"),
        ("waiting", "rework"),
    ]
    assert [len([event for event in state.history if event.round == "accept"]) for state in states] == [3, 3, 3]
    assert not [error for state in states for error in state.invalid]
    panels = [panel for panel in measure(states).panels if not panel.category]
    assert [(panel.round, panel.unanimous.n, panel.unanimous.of) for panel in panels] == [
        ("accept", 0, 3),
        ("cross_check", 3, 3),
    ]


def written(question: str = "Which number?") -> list[dict[str, Any]]:
    value = {"x": 10, "y": 10, "width": 5, "height": 5, "rotation": 0, "rectanglelabels": ["target"]}
    frame = {"original_width": 4000, "original_height": 3000, "image_rotation": 0}
    box = {"from_name": "box", "to_name": "image", "type": "rectanglelabels", "value": value, **frame}
    return [box, choice("category", "ocr"), text("question", question), text("answer", "42")]


def test_the_gate_refuses_whatever_the_sync_would_not_take(server: LabelStudioServer, workspace: Workspace) -> None:
    """However it is sent; and what it took stays when roles and rules change, or an admin deletes tasks."""
    started, pool = server.find(), small_pool(workspace)
    assert started is not None
    environment, campaign = {URL: started.url, TOKEN: server.admin.token}, Campaign(name="gated", gold_share=0)
    with Journal(workspace.annotation) as journal, connect(workspace, environment) as studio:
        made = studio.add_person("gated@example.com", role="annotator", password="a secret of the gated")
        sync = Sync(journal, studio, campaign, say=lambda text: None)
        assert sync.run(pool) == {"annotate": 3}
        assert Doctor(journal, studio).examine().sentences == [], "the server has what was handed out, to the letter"
        project = journal.project("annotate")
        assert project is not None
        with http_client(started.url, made["token"]) as ann:
            opened = {"id": "next_task", "project": project.project_id}
            path = f"/api/tasks/{ann.post('/api/dm/actions', params=opened, json={}).json()['id']}/annotations/"
            for refused in (
                ann.post(path, json={"result": []}),
                ann.post(path, json={"result": written(" ")}),
                ann.post(path, json={"lead_time": 3.0}),
                ann.post(path, params={"was_cancelled": 0}, json={"result": [], "was_cancelled": True}),
            ):
                assert refused.status_code == 403, refused.text[:200]
                assert refused.json()["validation_errors"]["non_field_errors"]
            for unread in (
                ann.post(path, data={"result": "[]"}),
                ann.post(path, content=b'{"result": [{"score": 1e999}]}', headers={"Content-Type": "application/json"}),
            ):
                assert (unread.status_code, unread.json()["detail"][:21]) == (400, "The body of this requ")
            n_blocked = len(studio.blocked_submissions(0))
            assert httpx.post(started.url + path, data={"result": "[]"}, timeout=300, trust_env=False).status_code in (
                401,
                403,
            )
            assert len(studio.blocked_submissions(0)) == n_blocked, "the log is for people with an account"
            assert ann.post(path, json={"result": written()}).status_code == 201
            skipped = ann.post("/api/dm/actions", params=opened, json={}).json()["id"]
            skip = ann.post(f"/api/tasks/{skipped}/annotations/", json={"result": [], "was_cancelled": True})
            assert skip.status_code == 201
            back = ann.patch(f"/api/annotations/{skip.json()['id']}/", json={"was_cancelled": False})
            assert back.status_code == 403, "an empty skip does not become a submission"
        as_if_killed_before_counting(server, project.project_id)
        assert sync.run(pool) == {"cross_check": 1}
        promote = ["users", "add", "gated@example.com", "--role", "expert"]
        beforehand = CliRunner().invoke(app, [*promote, "--dry-run"], env=environment)
        assert "gated@example.com: annotator -> expert; what they submitted" in beforehand.output
        assert next(one.role for one in studio.people() if one.email == "gated@example.com") == "annotator"
        assert CliRunner().invoke(app, promote, env=environment).exit_code == 0
        studio.delete_task(max(task.task_id for task in studio.tasks_after(project.project_id, 0)))
        said: list[str] = []
        strict = campaign.model_copy(update={"max_share": 0.0001})
        assert Sync(journal, studio, strict, say=said.append).run(pool) == {}, "no record is sent back"
        assert sum("1 task is missing" in line for line in said) == 1
        doctor = Doctor(journal, studio)
        assert [line.partition(";")[0] for line in doctor.examine().sentences] == [
            f"annotate, project {project.project_id}: 1 task missing, unfinished"
        ]
        assert CliRunner().invoke(app, ["doctor"], env=environment).exit_code == 1
        assert CliRunner().invoke(app, ["doctor", "--repair"], env=environment).exit_code == 0
        assert Sync(journal, studio, strict, say=said.append).run(pool) == {"annotate": 1}
        assert doctor.examine().sentences == []
        assert len(journal.blocked_submissions()) >= 5, "of JSON; the fence refuses the rest"


def as_if_killed_before_counting(server: LabelStudioServer, project: int) -> None:
    """Label Studio stores an annotation first, and counts its task's afterwards: a kill in between loses the count."""
    forget = sa.text("UPDATE task SET total_annotations = 0, cancelled_annotations = 0 WHERE project_id = :project")
    with tables_of(server) as connection:
        assert connection.execute(forget, {"project": project}).rowcount == 3


def test_the_sensor_hands_out_and_asks_for_a_run_when_something_came_in(
    server: LabelStudioServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = server.find()
    assert started is not None
    small_pool(workspace)
    (workspace.annotation).mkdir(parents=True, exist_ok=True)
    (workspace.annotation / "campaign.yaml").write_text("name: sensed")
    monkeypatch.setenv(URL, started.url)
    monkeypatch.setenv(TOKEN, server.admin.token)
    with dg.instance_for_test() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"workspace": WorkspaceResource()})
        asked = annotation_sync(context)
        assert isinstance(asked, dg.RunRequest)
        again = annotation_sync(context)
        assert isinstance(again, dg.SkipReason)
        assert again.skip_message == "no new submissions"
