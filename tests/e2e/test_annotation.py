"""A campaign on a real Label Studio: eight people at the same time, every round, and a puller that is killed.

``DARKROOM_TEST_POSTGRES=1`` runs it on PostgreSQL, from Debian's package, instead of SQLite.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import dagster as dg
import datasets
import httpx
import pytest
import sqlalchemy as sa
from PIL import Image, ImageDraw
from typer.testing import CliRunner

from annotation import AnnotationError
from annotation.cli import app
from annotation.label_studio.client import LabelStudioClient
from annotation.label_studio.server import (
    TOKEN,
    URL,
    LabelStudioServer,
    connect,
    find_task_url,
    server_of,
    wait_until_ready,
)
from annotation.quality.metrics import measure
from annotation.queues.review import ReviewQueue
from annotation.queues.suitability import CHECK, SuitabilityQueue
from annotation.queues.verification import VerificationQueue
from annotation.rounds.campaign import Campaign
from annotation.rounds.doctor import Doctor
from annotation.rounds.image_pool import POOL
from annotation.rounds.journal import Journal
from annotation.rounds.planted_errors import is_selected
from annotation.rounds.record_state import ROUNDS
from annotation.rounds.sync import Sync
from annotation.rounds.tables import ACCEPTED, AnnotationStages
from assets.graph.annotation import annotation_sync
from assets.graph.resources import WorkspaceResource
from benchmarks.annotation_faults import at_work, audit
from benchmarks.cutting_proxy import cutting_proxy
from pipelines.generation.recipes import load_recipes
from pipelines.generation.stage import SAMPLES
from pipelines.publishing.rl_dataset import KEY as RL_ROWS
from pipelines.publishing.rl_dataset import rl_folder
from pipelines.publishing.sft_dataset import SftDataset
from pipelines.records import Annotated, ImageRef, PoolImage, Sample, Trajectory, Truth
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace
from pipelines.verification.judges.labels import read_labels
from scripts.ports import free_port
from scripts.postgres import postgres
from tests.e2e.annotators import SMALL, Person, Room, answer_of, boxes, choice, http_client, plan_of, question_of, text

N_IMAGES = 60
OTHER_FORM = '<View><Image name="image" value="$image"/></View>'
SIZE = (2304, 1296)
PATIENCE_SECONDS = 1800


@pytest.fixture(scope="module")
def environments(root: Path) -> Path:
    """Where Label Studio is installed: once per checkout, not once per test."""
    return Path(os.environ.get("DARKROOM_HOME") or root / "data").absolute() / "environments"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotation") / "home"
    (folder / "annotation" / "images").mkdir(parents=True)
    for number in range(N_IMAGES):
        image(number).save(folder / "annotation" / "images" / f"{number:03d}.jpg", quality=80)
    Image.new("1", (20_001, 10_000)).save(folder / "annotation" / "images" / "poster.png")
    (folder / "annotation" / "campaign.yaml").write_text(
        "name: streets\nimages: [{path: images, source: ours, license: CC0-1.0}]\ngold_share: 0.2\n"
    )
    return folder


@pytest.fixture(scope="module")
def server(home: Path, environments: Path) -> Iterator[LabelStudioServer]:
    environment = {"DARKROOM_HOME": str(home), "DARKROOM_ENVIRONMENTS": str(environments)}
    studio = server_of(Workspace.from_environment(environment))
    with database() as url:
        started = studio.start(port=free_port(), postgres=url)
        try:
            wait_until_ready(started, report=lambda seconds: None)
            yield studio
        finally:
            studio.stop()


@contextmanager
def database() -> Iterator[str | None]:
    """None for SQLite."""
    if not os.environ.get("DARKROOM_TEST_POSTGRES"):
        yield None
        return
    with postgres("studio") as url:
        yield url


def image(number: int) -> Image.Image:
    """A large image with a small white sign."""
    chance = random.Random(number)
    image = Image.new("RGB", SIZE, tuple(chance.randrange(256) for _ in range(3)))
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        x, y = chance.randrange(SIZE[0]), chance.randrange(SIZE[1])
        corner = (x + chance.randrange(20, 500), y + chance.randrange(20, 400))
        draw.rectangle((x, y, *corner), fill=tuple(chance.randrange(256) for _ in range(3)))
    draw.rectangle((580, 650, 668, 686), fill="white")
    draw.text((586, 654), answer_of(number), fill="black", font_size=24)
    return image


class Played(NamedTuple):
    """A campaign that has ended, and what its people did."""

    environment: dict[str, str]
    numbers: dict[str, int]
    room: Room


@pytest.fixture(scope="module")
def played(home: Path, server: LabelStudioServer) -> Played:
    """Eight people work at the same time; puller and server are killed now and then, and connections are cut."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    environment = {**kept, "PATH": path, "DARKROOM_HOME": str(home)}
    said = run_darkroom(environment, "annotate", "sync")
    assert "poster.png: too_large_image, 20001x10000 = 200,010,000 pixels, the limit is 200,000,000" in said
    with Workspace.from_environment(environment) as workspace:
        pool = workspace.tables.read(POOL, PoolImage)
        assert len(pool) == N_IMAGES
        numbers = {item.image.sha256: int(item.source_row[:3]) for item in pool}
        studio = connect(workspace, {})
        with cutting_proxy(urlsplit(studio.url).port or 0) as proxy:
            room = Room(proxy.url, numbers, sizes=SIZE)
            with at_work(everybody(studio, room)):
                through = environment | {URL: proxy.url, TOKEN: server.admin.token}
                pull_and_be_killed(through, workspace, room, server)
                finish(workspace, studio, room, pool)
            assert proxy.n_cut
        assert not room.errors, room.errors
        finish(workspace, studio, room, pool)
        studio.close()
    return Played(environment, numbers, room)


def test_a_campaign_ends_as_planned_whoever_was_faster_and_however_often_the_puller_was_killed(played: Played) -> None:
    with Workspace.from_environment(played.environment) as workspace, connect(workspace, {}) as studio:
        check_results(workspace, studio, played.numbers, played.room)


def test_what_people_accepted_becomes_rows_to_train_on_also_after_a_kill(played: Played) -> None:
    with Workspace.from_environment(played.environment) as workspace:
        check_rows_to_train_on(workspace, played.environment)


def check_rows_to_train_on(workspace: Workspace, environment: dict[str, str]) -> None:
    """RL rows of all records, and SFT rows of some boxes."""
    killed = subprocess.Popen(["darkroom", "annotate", "finish"], env=environment, start_new_session=True)
    deadline = time.monotonic() + 1800
    while not workspace.tables.exists(RL_ROWS):
        assert killed.poll() is None, "it was to be killed between its table and its files"
        assert time.monotonic() < deadline, "no RL rows in 1,800 s"
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    said = run_darkroom(environment, "annotate", "finish")
    assert f"accepted records: {N_IMAGES - 2} RL rows, 0 rejected" in said
    rows = [row for split in datasets.load_dataset(str(rl_folder(workspace))).values() for row in split]
    assert {row["answer"] for row in rows} == {answer_of(number) for number in range(N_IMAGES)} - {
        answer_of(7),
        answer_of(17),
    }
    assert all(row["origin"] == "annotated" for row in rows)
    run_darkroom(environment, "materialize", "accepted_annotations", "--family", "crop", "--quota", "crop=3")
    sft = datasets.load_dataset(str(workspace.dataset("sft", "crop")))
    assert sum(len(split) for split in sft.values()) == 3


def run_darkroom(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(["darkroom", *words], env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def everybody(studio: LabelStudioClient, room: Room) -> list[Person]:
    people = []
    for number in range(8):
        role = "expert" if number >= 6 else "annotator"
        made = studio.add_person(f"{role}{number}@example.com", role=role, password=f"a secret {number} of theirs")
        people.append(Person(room, made["email"], made["token"], role, duplicates=number == 1, tampers=number == 2))
    return people


def pull_and_be_killed(
    environment: dict[str, str], workspace: Workspace, room: Room, server: LabelStudioServer
) -> None:
    """Syncs as the command does it and kills the process group somewhere in the middle, four times; the server once."""
    chance = random.Random(4)
    for number in range(4):
        time.sleep(6)
        process = subprocess.Popen(
            ["darkroom", "annotate", "sync"], env=environment, start_new_session=True, stdout=subprocess.DEVNULL
        )
        time.sleep(2.5 + 4 * chance.random())
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        open_rounds(workspace, room)
        if number == 2:
            kill(server)
            wait_until_ready(server.start(), report=lambda seconds: None)


def kill(server: LabelStudioServer) -> None:
    started = server.find()
    assert started is not None
    os.kill(started.process.pid, signal.SIGKILL)
    while started.process.is_running:  # a signal is only on its way when `kill` returns
        time.sleep(0.05)


def finish(workspace: Workspace, studio: LabelStudioClient, room: Room, pool: list[PoolImage]) -> None:
    campaign = Campaign.load(workspace.annotation)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with Journal(workspace.annotation) as journal:
            Sync(journal, studio, campaign, say=lambda text: None).run(pool)
            kept = AnnotationStages(workspace, campaign, journal, find_task_url(workspace, {})).read().records
            n_planted = sum(bool(work.demand.planted_error) for _, works in journal.works(ROUNDS) for work in works)
        open_rounds(workspace, room)
        waiting = [one.state.round for one in kept if one.state.stage == "waiting"]
        if sum(bool(one.state.planted_checks) for one in kept) < n_planted:
            waiting.append("planted_errors")
        if not waiting or room.errors:
            return
        assert time.monotonic() < deadline, f"still waiting: {waiting}"
        time.sleep(2)


def open_rounds(workspace: Workspace, room: Room) -> None:
    with Journal(workspace.annotation) as journal:
        known = {round: journal.project(round) for round in ("annotate", "cross_check", "accept", "rework")}
    room.projects = {round: found[0] for round, found in known.items() if found}


def check_results(workspace: Workspace, studio: LabelStudioClient, numbers: dict[str, int], room: Room) -> None:
    campaign = Campaign.load(workspace.annotation)
    with Journal(workspace.annotation) as journal:
        stages = AnnotationStages(workspace, campaign, journal, find_task_url(workspace, {}))
        reading = stages.read()
        kept, report = reading.records, stages.materialize(reading)[ACCEPTED]
        hits = journal.blocked_submissions()
    accepted = {numbers[row.image.sha256]: row for row in workspace.tables.read(ACCEPTED, Annotated)}
    assert report.n_out == len(accepted)
    assert {number: summary(row) for number, row in accepted.items()} == expected()
    given_up = {numbers[one.item.image.sha256]: one.state for one in kept if one.state.stage == "rejected"}
    assert {number: (state.attempt, state.reason) for number, state in given_up.items()} == dict.fromkeys(
        (7, 17), (2, "rejected in cross_check for too_easy")
    )
    for row in accepted.values():
        check_hands(row)
    golds = {numbers[one.item.image.sha256]: one.state.planted_checks for one in kept if one.state.planted_checks}
    chosen = {n for digest, n in numbers.items() if is_selected(digest, campaign.name, campaign.gold_share)}
    assert set(golds) == chosen - {7, 17}, "every planted error was looked at"
    for number, checks in golds.items():
        checkers = {event.person for event in accepted[number].history if event.attempt == 0}
        assert all(check.person not in checkers for check in checks), "who knew the record got its planted copy"
        assert all(check.caught for check in checks if check.error == "wrong_answer")
    refused = [one.reason for one in (error for state in kept for error in state.state.invalid)]
    assert room.tallies["late edits"] + room.tallies["late edits of who left"] == 1
    assert set(refused) == {"duplicate_submission", *(["late_edit"] if room.tallies["late edits"] else [])}
    tried_again = room.tallies["cut off"] + room.tallies["failures of the server"]
    n_refused = room.tallies["refused submissions"]
    assert 0 < n_refused <= len(hits) <= n_refused + tried_again, "what the fence refuses is no submission"
    assert audit(workspace, studio, room).passed
    assert room.tallies["tampering"] > 0
    check_nothing_is_there_twice(workspace, studio)


def check_hands(row: Annotated) -> None:
    """Nobody judged a record that they had written, or one attempt twice."""
    authors: set[str] = set()
    judged: set[tuple[int, str]] = set()
    for event in row.history:
        if event.round in ("annotate", "rework"):
            authors.add(event.person)
        else:
            assert event.person not in authors, row.history
            assert (event.attempt, event.person) not in judged, row.history
            judged.add((event.attempt, event.person))


def summary(row: Annotated) -> Any:
    verdicts = [(event.round, event.attempt, event.verdict) for event in row.history]
    return row.question, row.answer, row.category, [tuple(box.box) for box in row.boxes], verdicts


def expected() -> dict[int, Any]:
    found = {}
    box = (576, 648, 669, 687)
    for number in range(N_IMAGES):
        plan = plan_of(number)
        verdicts = [("annotate", 0, ""), ("cross_check", 0, "accept"), ("accept", 0, "accept")]
        attempt, category = 0, "ocr"
        if plan == "hopeless":
            continue
        if plan == "wrong":
            verdicts[1] = ("cross_check", 0, "fix")
        if plan == "expert_fixes":
            verdicts[2], category = ("accept", 0, "fix"), "object"
        if plan == "expert_rejects":
            verdicts[2:] = [
                ("accept", 0, "reject"),
                ("rework", 1, ""),
                ("cross_check", 1, "accept"),
                ("accept", 1, "accept"),
            ]
            attempt = 1
        found[number] = (question_of(attempt), answer_of(number), category, [box], verdicts)
    return found


def check_nothing_is_there_twice(workspace: Workspace, studio: LabelStudioClient) -> None:
    with Journal(workspace.annotation) as journal:
        for round in ("annotate", "cross_check", "accept", "rework"):
            known = journal.project(round)
            assert known is not None
            keys = [listed.key for listed in studio.tasks_after(known[0], 0)]
            assert len(keys) == len(set(keys)), f"a task of {round} was imported twice"
            assert set(keys) == journal.demanded(keys), f"{round} has tasks that nobody demanded"


def test_a_killed_server_comes_back_at_its_address_with_everything_and_everybodys_login(
    server: LabelStudioServer, home: Path
) -> None:
    started, admin = server.find(), server.admin
    assert started is not None
    with (
        Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace,
        http_client(started.url) as tab,
    ):
        tab.get("/user/login/")
        body = {"email": admin.email, "password": admin.password, "csrfmiddlewaretoken": tab.cookies["csrftoken"]}
        assert tab.post("/user/login/", data=body, headers={"Referer": started.url}).status_code == 302
        with connect(workspace, {}) as studio:
            before = studio.people()
            revoke = studio._http.post("/api/current-user/reset-token/")
            assert revoke.status_code == 201
            with pytest.raises(AnnotationError, match=r"rejects the token.*with `darkroom annotate up`"):
                studio.people()
        kill(server)
        again = server.start()
        assert again.url == started.url
        wait_until_ready(again, report=lambda seconds: None)
        assert tab.get("/api/current-user/whoami").json()["email"] == admin.email
        with connect(workspace, {}) as studio:
            assert studio.people() == before


def test_another_version_of_label_studio_and_a_database_of_a_newer_one_are_refused(
    server: LabelStudioServer, tmp_path: Path
) -> None:
    """Django itself would run on the tables of a newer version."""

    def bootstrap(**changed: str) -> str:
        variables = server.variables(None) | {"LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path)} | changed
        command = [str(server.environment.folder / "bin" / "python"), "-m", "darkroom_studio.bootstrap"]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    said = bootstrap(STUDIO_VERSION="9.9.9")
    assert "works with 9.9.9 only. Remove that folder, and `darkroom annotate up` installs 9.9.9" in said
    shutil.copy(next(server.environments.glob("label-studio-*.sqlite3")), tmp_path / "label_studio.sqlite3")
    with closing(sqlite3.connect(tmp_path / "label_studio.sqlite3")) as database, database:
        database.execute(
            "insert into django_migrations(app, name, applied) values ('tasks', '9999_later', '2030-01-01')"
        )
    assert "does not know, such as tasks.9999_later. Start the version of Darkroom that wrote it" in bootstrap()


def test_a_backup_of_a_running_server_goes_on_elsewhere(
    played: Played, server: LabelStudioServer, tmp_path: Path
) -> None:
    """With accounts, logins, projects and the journal; ``DARKROOM_TEST_POSTGRES=1``: a dump into another database."""
    run_darkroom(played.environment, "annotate", "backup", str(tmp_path / "backup"))
    environment = {**played.environment, "DARKROOM_HOME": str(tmp_path / "home")}
    for kept in ("images", "tables"):
        shutil.copytree(Path(played.environment["DARKROOM_HOME"]) / kept, tmp_path / "home" / kept)
    with database() as url, Workspace.from_environment(environment) as workspace:
        run_darkroom(
            environment, "annotate", "restore", str(tmp_path / "backup"), *(["--postgres", url] if url else [])
        )
        restored = LabelStudioServer(workspace.annotation, server.environments, server.images_url)
        started = restored.start(port=free_port())
        try:
            wait_until_ready(started, report=lambda seconds: None)
            with Journal(workspace.annotation) as journal, connect(workspace, {}) as studio:
                assert studio.people() == list(journal.people().values())
                assert Doctor(journal, studio).examine().sentences == []
                pool = workspace.tables.read(POOL, PoolImage)
                campaign = Campaign.load(workspace.annotation)
                before = journal.progress()
                counts = Sync(journal, studio, campaign, say=lambda text: None).run(pool)
                assert (counts.n_revisions, counts.imported, journal.progress()) == (0, {}, before)
                added = [PoolImage(ImageRef("f" * 64, *SIZE, "RGB", "JPEG"), "ours", "new", "CC0-1.0")]
                assert Sync(journal, studio, campaign, say=lambda text: None).run(pool + added).imported == {
                    "annotate": 1
                }
            assert logs_in(started.url, "annotator0@example.com", "a secret 0 of theirs")
        finally:
            restored.stop()


def test_nobody_signs_up_and_nobody_anonymous_sees_an_image(server: LabelStudioServer) -> None:
    started = server.find()
    assert started is not None
    with http_client(started.url) as client:
        assert client.get("/darkroom/images/" + "0" * 64).status_code == 401
        assert client.get("/darkroom/people").status_code == 401
        client.get("/user/signup/")
        body = {"email": "x@example.com", "password": "xx-secret-1", "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        said = client.post("/user/signup/", data=body, headers={"Referer": started.url})
        assert said.status_code == 403


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
        assert queue.sync(studio, [recipe], n_rows=2).imported == {"review": 2}
        assert queue.sync(studio, [recipe], n_rows=2).imported == {}, "nothing goes out twice"
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
        assert queue.sync(studio, n_rows=2).imported == {"verify": 2}
        assert queue.sync(studio, n_rows=3).imported == {"verify": 1}, "a larger sample keeps the smaller one"
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
        assert queue.sync(studio, n_rows=3).imported == {"suitability": 3}
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
    labels = read_labels(queue.labels, CHECK)
    assert sorted(label.line.verdict for label in labels.labels) == ["accept", "reject"]


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
        assert sync.run(pool).imported == {"annotate": 3}
        known = journal.project("annotate")
        assert known is not None
        assert admin.patch(f"/api/projects/{known[0]}/", json={"label_config": OTHER_FORM}).status_code == 200
        with pytest.raises(AnnotationError, match="--reset-forms"):
            sync.run(pool)
        assert sync.run(pool, reset_forms=True).imported == {}
        assert admin.delete(f"/api/projects/{known[0]}/").status_code == 204
        with pytest.raises(AnnotationError, match="--recreate"):
            sync.run(pool)
        assert sync.run(pool, recreate=True).imported == {"annotate": 3}
        assert sync.run(pool).imported == {}


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
        assert sync.run(pool).imported == {"cross_check": 1}, "what was submitted counts"
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
        assert sync.run(pool).imported == {"cross_check": 3}
        assert take("marker", "annotate").status_code == 403, "a checker never writes"
        assert take("writer", "cross_check").status_code == 404, "nobody checks an own record"
        for name in ("marker", "second"):
            assert sync.run(pool).imported == {}, "one of two has checked them"
            for _ in pool:
                task, headers = take(name, "cross_check").json(), {"Authorization": f"Token {tokens[name]}"}
                answer = f"/darkroom/tasks/{task['id']}/answer"
                assert client.post(answer, json={"answer": "42"}, headers=headers).is_success
                submit(name, task, check)
            assert take(name, "cross_check").status_code == 404, "nobody checks a record twice"
        assert sync.run(pool).imported == {"accept": 3}
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
        assert sync.run(pool).imported == {"rework": 1}, "two of three sent it back; the last record waits"
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


def logs_in(url: str, email: str, password: str) -> bool:
    with http_client(url) as client:
        client.get("/user/login/")
        body = {"email": email, "password": password, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        return client.post("/user/login/", data=body, headers={"Referer": url}).status_code == 302


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
        assert sync.run(pool).imported == {"annotate": 3}
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
        assert sync.run(pool).imported == {"cross_check": 1}
        promote = ["users", "add", "gated@example.com", "--role", "expert"]
        beforehand = CliRunner().invoke(app, [*promote, "--dry-run"], env=environment)
        assert "gated@example.com: annotator -> expert; what they submitted" in beforehand.output
        assert next(one.role for one in studio.people() if one.email == "gated@example.com") == "annotator"
        assert CliRunner().invoke(app, promote, env=environment).exit_code == 0
        studio.delete_task(max(task.task_id for task in studio.tasks_after(project.project_id, 0)))
        said: list[str] = []
        strict = campaign.model_copy(update={"max_share": 0.0001})
        assert Sync(journal, studio, strict, say=said.append).run(pool).imported == {}, "no record is sent back"
        assert sum("1 task is missing" in line for line in said) == 1
        doctor = Doctor(journal, studio)
        assert [line.partition(";")[0] for line in doctor.examine().sentences] == [
            f"annotate, project {project.project_id}: 1 task missing, unfinished"
        ]
        assert CliRunner().invoke(app, ["doctor"], env=environment).exit_code == 1
        assert CliRunner().invoke(app, ["doctor", "--repair"], env=environment).exit_code == 0
        assert Sync(journal, studio, strict, say=said.append).run(pool).imported == {"annotate": 1}
        assert doctor.examine().sentences == []
        assert len(journal.blocked_submissions()) >= 5, "of JSON; the fence refuses the rest"


def as_if_killed_before_counting(server: LabelStudioServer, project: int) -> None:
    """Label Studio stores an annotation first, and counts its task's afterwards: a kill in between loses the count."""
    started = server.find()
    assert started is not None
    url = started.database.replace("postgresql://", "postgresql+psycopg://").replace("***", "x")
    file = server.folder / "studio" / "label_studio.sqlite3"
    studio = sa.create_engine(f"sqlite:///{file}" if url == "sqlite" else url)
    forget = sa.text("UPDATE task SET total_annotations = 0, cancelled_annotations = 0 WHERE project_id = :project")
    with studio.begin() as connection:
        assert connection.execute(forget, {"project": project}).rowcount == 3
    studio.dispose()


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
