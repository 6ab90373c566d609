"""People on a real Label Studio: nobody is paid for more than was worked, reaches others' numbers, keeps a lock or
token, guesses passwords; everybody reads their own language, and the limits of this campaign."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import httpx
import pytest
import sqlalchemy as sa

from darkroom.annotation import AnnotationError
from darkroom.annotation._plugin.darkroom_studio.access import FREE_FAILURES
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import TOKEN, URL, LabelStudioServer, connect, note_act
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.sync import Sync
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotation.studio import logs_in, run_darkroom, tables_of
from tests.e2e.annotation.test_rounds import small_pool, written
from tests.e2e.annotators import http_client

WRITABLE = """
import django; django.setup()
import json
from tasks.serializers import AnnotationDraftSerializer, AnnotationSerializer
from users.serializers import HotkeysSerializer
kinds = {"annotation": AnnotationSerializer, "draft": AnnotationDraftSerializer, "hotkeys": HotkeysSerializer}
fields = {name: [n for n, f in kind().fields.items() if not f.read_only] for name, kind in kinds.items()}
print("fields", json.dumps(fields))
"""


class RunningCampaign(NamedTuple):
    """A campaign of three images on the server, handed out."""

    url: str
    journal: Journal
    studio: LabelStudioClient
    pool: list[PoolImage]
    campaign: Campaign
    project: int

    def sync(self, **changed: Any) -> None:
        campaign = self.campaign.model_copy(update=changed)
        Sync(self.journal, self.studio, campaign, say=lambda text: None).run(self.pool)

    def open_task(self, person: httpx.Client) -> dict[str, Any]:
        opened = {"id": "next_task", "project": self.project}
        return dict(person.post("/api/dm/actions", params=opened, json={}).json())


@contextmanager
def running_campaign(server: LabelStudioServer, workspace: Workspace, **rules: Any) -> Iterator[RunningCampaign]:
    started, pool = server.find(), small_pool(workspace)
    assert started is not None
    environment, campaign = {URL: started.url, TOKEN: server.admin.token}, Campaign(gold_share=0, **rules)
    with Journal(workspace.annotation) as journal, connect(workspace, environment) as studio:
        Sync(journal, studio, campaign, say=lambda text: None).run(pool)
        project = journal.project("annotate")
        assert project is not None
        yield RunningCampaign(started.url, journal, studio, pool, campaign, project.project_id)


def test_what_a_client_sends_is_neither_paid_nor_tells_of_others(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    with running_campaign(server, workspace, name="trust") as running:
        terms = {"role": "annotator", "password": "a secret of theirs"}
        tokens = {
            name: running.studio.add_person(f"{name}@trust.example.com", **terms)["token"] for name in ("paid", "other")
        }
        with http_client(running.url, tokens["paid"]) as paid, http_client(running.url, tokens["other"]) as other:
            began = time.monotonic()
            task = running.open_task(paid)["id"]
            others_task = running.open_task(other)["id"]
            draft = {"result": written(), "lead_time": 5, "project": running.project}
            others_draft = other.post(f"/api/tasks/{others_task}/drafts", json=draft)
            assert others_draft.status_code == 201, others_draft.text[:300]
            made = paid.post(
                f"/api/tasks/{task}/annotations/",
                json={
                    "result": written(),
                    "lead_time": 1e9,
                    "project": 1,
                    "parent_annotation": 10**6,  # exists or not: the answer is the same
                    "parent_prediction": 10**6,
                    "draft_id": others_draft.json()["id"],
                },
            )
            assert made.status_code == 201, made.text[:300]
            assert made.json()["project"] == running.project
            assert 0 <= made.json()["lead_time"] <= time.monotonic() - began + 1
            assert other.get(f"/api/tasks/{others_task}/").json()["drafts"], "nobody's draft is gone"
            for sent in (-1e12, 1e9, float("1e300")):
                edit = {"result": written("Which number now?"), "lead_time": sent, "project": 1, "id": 1}
                edited = paid.patch(f"/api/annotations/{made.json()['id']}/", json=edit)
                assert edited.status_code == 200, edited.text[:300]
                assert edited.json()["project"] == running.project
                assert 0 <= edited.json()["lead_time"] <= time.monotonic() - began + 1
        running.sync()
        versions = [entry for _, entry, _ in running.journal.versions_after(0) if entry.get("result")]
        assert all(0 <= entry["lead_time"] < 600 for entry in versions)


def test_pages_forms_and_messages_are_in_the_browsers_language_with_the_campaigns_limits(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    with running_campaign(server, workspace, name="worte", max_share=0.0125, max_rework=7, language="es") as running:
        made = running.studio.add_person("worte@example.com", role="annotator", password="a secret of theirs")

        def read(person: httpx.Client, accepted: str) -> tuple[dict[str, Any], str]:
            person.headers["Accept-Language"] = accepted
            shown = person.get(f"/api/projects/{running.project}/").json()
            return shown, shown["expert_instruction"].split('<div class="dr-guide')[1]

        with http_client(running.url, made["token"]) as person:
            shown, guide = read(person, "de-DE,de;q=0.9,en;q=0.8")
            assert shown["title"] == "Worte: Fragen schreiben"
            assert 'value="Menge" alias="quantity"' in shown["label_config"]
            assert "mehr als 1.25 % der Bildfläche" in guide
            assert "<td>Menge</td>" in guide
            assert "más del 1.25 % de la imagen" in read(person, "fr")[1], "without theirs, the campaign's"
            person.headers["Accept-Language"] = "de"
            task = running.open_task(person)
            assert task["data"]["rules"].startswith("**Dieses Bild hat 4,000 × 3,000 Pixel.**")
            blocked = person.post(f"/api/tasks/{task['id']}/annotations/", json={"result": written(" ")[1:]})
            said = "Die Frage ist leer. Zeichne mindestens einen Rahmen um das Zielobjekt."
            assert " ".join(blocked.json()["validation_errors"]["non_field_errors"]) == said
        with http_client(running.url) as browser:
            browser.headers["Accept-Language"] = "zh-CN"
            assert log_in(browser, "worte@example.com", "a secret of theirs").status_code == 302
            page = browser.get("/projects/")
            assert "3 个等待，今天完成 0 个" in page.text
            assert "default-src 'none'" in page.headers["Content-Security-Policy"]
            assert page.headers["X-Frame-Options"] == "DENY"
            [entry] = running.studio.blocked_submissions(len(running.studio.blocked_submissions(0)) - 1)
            assert entry["person"] == "worte@example.com"
        running.sync(max_share=0.03)
        with http_client(running.url, made["token"]) as person:
            assert "mehr als 3 % der Bildfläche" in read(person, "de")[1], "a guide follows its campaign"
            choices = '<Choices name="c" toName="t"><Choice value="Accept"/><Choice value="Reject"/></Choices>'
            theirs = {
                "title": "Theirs: write questions",
                "label_config": f'<View><Text name="t" value="$t"/>{choices}</View>',
            }
            with http_client(running.url, server.admin.token) as admin:
                number = admin.post("/api/projects/", json=theirs).json()["id"]
                assert admin.post(f"/api/projects/{number}/import", json=[{"t": "x", "rules": None}]).is_success
            shown = person.get(f"/api/projects/{number}/").json()
            assert {name: shown[name] for name in theirs} == theirs, "another team's choices store what they show"
            opened = {"id": "next_task", "project": number}
            assert person.post("/api/dm/actions", params=opened, json={}).json()["data"] == {"t": "x", "rules": None}


def test_every_field_that_label_studio_would_write_is_allowed_by_name_or_refused(
    server: LabelStudioServer, workspace: Workspace
) -> None:
    fields = _writable_fields(server)
    assert {"project", "ground_truth", "completed_by"} <= set(fields["annotation"])
    allowed = {"result", "lead_time", "was_cancelled", "draft_id", "unique_id"}  # lead_time is overwritten
    dropped = {"id", "project", "parent_annotation", "parent_prediction", "started_at"}
    with running_campaign(server, workspace, name="fields") as running:
        made = running.studio.add_person("fields@example.com", role="annotator", password="a secret of theirs")
        with http_client(running.url, made["token"]) as person:
            task = running.open_task(person)["id"]
            path = f"/api/tasks/{task}/annotations/"
            for name in sorted({*fields["annotation"], *fields["draft"]} - allowed - dropped - {"was_postponed"}):
                for route in (path, f"/api/tasks/{task}/drafts"):
                    said = person.post(route, json={"result": written(), name: 1})
                    assert (said.status_code, name in said.text) == (403, True), (route, name, said.text[:200])
            hotkeys = {name: 1 for name in fields["hotkeys"] if name != "custom_hotkeys"} | {"email": "x@y.z"}
            for name in hotkeys:
                assert person.patch("/api/current-user/hotkeys/", json={name: 1}).status_code == 403


def _writable_fields(server: LabelStudioServer) -> dict[str, list[str]]:
    """By Label Studio's own serializers, in its own environment."""
    command = [server.environment.python, "-c", WRITABLE]
    done = subprocess.run(command, env=server.variables(None), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("fields "))
    return dict(json.loads(line.removeprefix("fields ")))


def test_a_lock_that_nobody_holds_is_named_and_released(server: LabelStudioServer, workspace: Workspace) -> None:
    with running_campaign(server, workspace, name="locks") as running:
        token = running.studio.add_person("lock@example.com", role="annotator", password="a secret of theirs")["token"]
        with http_client(running.url, token) as person:
            task = running.open_task(person)["id"]
            with tables_of(server) as tables:
                rows = tables.execute(sa.text("select * from tasks_tasklock where task_id = :task"), {"task": task})
                [lock] = rows.mappings().all()
            assert person.post(f"/api/tasks/{task}/annotations/", json={"result": written()}).status_code == 201
            held = running.open_task(person)["id"]
        with tables_of(server) as tables:  # as if killed between storing and releasing
            names = ", ".join(lock)
            tables.execute(sa.text(f"insert into tasks_tasklock ({names}) values (:{', :'.join(lock)})"), dict(lock))
        doctor = Doctor(running.journal, running.studio)
        said = f"annotate, project {running.project}: 1 task locked by people who do not work on it"
        assert [line for line in doctor.examine().sentences if line.startswith(said)]
        running.sync()
        assert not any("locked" in line for line in doctor.examine().sentences)
        with tables_of(server) as tables:
            ours = sa.text("select task_id from tasks_tasklock where task_id in (:a, :b)")
            kept = tables.execute(ours, {"a": task, "b": held})
            assert [row[0] for row in kept] == [held], "who works on a task keeps it"


def test_passwords_are_not_guessed_and_a_new_one_voids_the_token(
    server: LabelStudioServer, workspace: Workspace, clean_environment: dict[str, str]
) -> None:
    started = server.find()
    assert started is not None
    environment = {URL: started.url, TOKEN: server.admin.token}
    secret = "a secret of theirs"
    with connect(workspace, environment) as studio:
        for name in ("guessed", "bystander"):
            token = studio.add_person(f"{name}@example.com", role="annotator", password=secret)["token"]
    for n in range(FREE_FAILURES):
        assert not logs_in(started.url, "guessed@example.com", f"guess {n}")
    with http_client(started.url) as browser:
        refused = log_in(browser, "Guessed@example.com", secret)
    assert refused.status_code == 429
    assert f"Try again in {refused.headers['retry-after']} seconds" in refused.text
    assert logs_in(started.url, "bystander@example.com", secret)
    with tables_of(server) as tables:  # the wait is over
        tables.execute(sa.text("update darkroom_failed_logins set last_at = last_at - 3600"))
    assert logs_in(started.url, "guessed@example.com", secret)
    assert not logs_in(started.url, "guessed@example.com", "one more slip")
    assert logs_in(started.url, "guessed@example.com", secret), "a right password ended the count"
    with http_client(started.url, token) as person:
        assert person.get("/api/current-user/whoami").status_code == 200
        words = ["annotate", "users", "password", "bystander@example.com", "--password", "another secret"]
        run_darkroom({**clean_environment, **environment}, *words)
        assert person.get("/api/current-user/whoami").status_code == 401


def log_in(browser: httpx.Client, email: str, password: str) -> httpx.Response:
    browser.get("/user/login/")
    body = {"email": email, "password": password, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    return browser.post("/user/login/", data=body, headers={"Referer": str(browser.base_url)})


def test_the_commands_that_a_reset_token_names_help(
    server: LabelStudioServer, clean_environment: dict[str, str]
) -> None:
    started = server.find()
    assert started is not None
    with http_client(started.url, server.admin.token) as admin:
        assert admin.post("/api/current-user/reset-token/").status_code == 201
    environment = {**clean_environment, "DARKROOM_HOME": str(server.folder.parent)}
    environment["DARKROOM_ENVIRONMENTS"] = str(server.environments)
    with pytest.raises(AnnotationError, match="rejects the token") as refused, connect_own(server) as studio:
        studio.people()
    commands = re.findall(r"`darkroom (annotate \w+)`", str(refused.value))
    assert commands == ["annotate down", "annotate up"]
    for command in commands:
        run_darkroom(environment, *command.split())
    with connect_own(server) as studio:
        assert studio.people()


def connect_own(server: LabelStudioServer) -> LabelStudioClient:
    started = server.find()
    assert started is not None
    return LabelStudioClient(started.url, server.admin.token, pauses=())


def test_what_administrators_do_is_in_a_log_that_only_grows(server: LabelStudioServer, workspace: Workspace) -> None:
    """Commands and requests, by whom and with which end; no password, no token, nothing that only reads."""
    with running_campaign(server, workspace, name="audited") as running:
        before = [act["id"] for act in running.studio.audit()]
        account = running.studio.add_person("ada@audit.example.com", role="annotator", password="a secret of theirs")
        running.studio.set_password("ada@audit.example.com", "another secret of theirs")
        changed: list[str] = []
        Sync(running.journal, running.studio, running.campaign, say=str, note=changed.append).run(running.pool)
        rules = running.campaign.model_copy(update={"max_share": 0.01})
        Sync(running.journal, running.studio, rules, say=str, note=changed.append).run(running.pool)
        assert changed == ["terms of annotate, cross_check, accept, rework: max_share 0.05 -> 0.01"]
        numbers = [p.project_id for round in ("annotate", "rework") if (p := running.journal.project(round))]
        running.studio.note_act("sync --reset-forms")
        with http_client(running.url, server.admin.token) as admin:
            admin.get("/api/projects/")
            admin.patch(f"/api/projects/{running.project}/?token={server.admin.token}", json={"title": "a secret"})
            admin.delete("/api/projects/999999/")
        running.studio.remove_person("ada@audit.example.com")
        acts = [act for act in running.studio.audit() if act["id"] not in before]
        own = [
            (act["request"].partition("/darkroom/")[2] or act["request"], act["status"], act["note"]) for act in acts
        ]
        assert own == [
            ("people", 201, "ada@audit.example.com: annotator"),
            ("people/password", 200, "ada@audit.example.com"),
            *((f"PATCH /api/projects/{number}/", 200, "") for number in numbers),  # the guide names the limit
            ("audit", 200, "sync --reset-forms"),
            (f"PATCH /api/projects/{running.project}/", 200, ""),
            ("DELETE /api/projects/999999/", 404, ""),
            ("people/remove", 200, "ada@audit.example.com"),
        ]
        assert acts[0]["who"].startswith(f"{server.admin.email} "), "the system's user, too"
        secrets = ("secret", account["token"], server.admin.token, server.admin.password)
        assert not [secret for secret in secrets if secret in json.dumps(acts)]
        with http_client(running.url, account["token"]) as ada:
            assert ada.get("/darkroom/audit").status_code == 401, "the account is closed"
        for refused in ("update darkroom_audit set note = ''", "delete from darkroom_audit"):
            with suppress(sa.exc.SQLAlchemyError), tables_of(server) as tables:  # PostgreSQL does nothing instead
                tables.execute(sa.text(refused))
        assert [act for act in running.studio.audit() if act["id"] not in before] == acts


def test_what_a_command_did_without_a_server_is_in_the_log_of_the_next(
    server: LabelStudioServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = server.find()
    assert started is not None
    monkeypatch.delenv(URL, raising=False)
    monkeypatch.delenv(TOKEN, raising=False)
    note_act(workspace, "restore /backups/1\nof today")
    assert "restore /backups/1 of today" in (workspace.annotation / "acts.txt").read_text()
    monkeypatch.setenv(URL, started.url)
    monkeypatch.setenv(TOKEN, server.admin.token)
    note_act(workspace, "finish")
    with connect(workspace) as studio:
        notes = [act["note"].partition(" ")[2] for act in studio.audit()][-2:]
    assert notes == ["restore /backups/1 of today", "finish"]
    assert (workspace.annotation / "acts.txt").read_text() == ""
