"""A campaign on a real Label Studio: eight people at the same time, every round, and a puller that is killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import datasets
import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import (
    TOKEN,
    URL,
    LabelStudioServer,
    connect,
    find_task_url,
    wait_until_ready,
)
from darkroom.annotation.rounds.campaign import Campaign, is_selected
from darkroom.annotation.rounds.doctor import Doctor
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import ACCEPTED, AnnotationStages
from darkroom.pipelines.publishing.rl_dataset import KEY as RL_ROWS, rl_folder
from darkroom.pipelines.records import Annotated, ImageRef, PoolImage
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotation.studio import N_IMAGES, SIZE, database, logs_in, run_darkroom
from tests.e2e.annotators import Person, Room, answer_of, http_client, plan_of, question_of
from tests.matrices import first_quickly
from tests.ports import free_port
from tests.soak.annotation_faults import at_work, audit
from tests.soak.cutting_proxy import cutting_proxy

PATIENCE_SECONDS = 1800


class Played(NamedTuple):
    """A campaign that has ended, and what its people did."""

    numbers: dict[str, int]
    room: Room


@pytest.fixture(scope="module")
def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "DARKROOM_HOME": str(home)}


@pytest.fixture(scope="module")
def begun(environment: dict[str, str], server: LabelStudioServer) -> tuple[str, str]:
    """The tasks of the first round are there, and a person who has done none: address and password."""
    with Workspace.from_environment(environment) as workspace, connect(workspace, {}) as studio:
        studio.add_person("first@example.com", role="annotator", password="a secret of the first")
    run_darkroom(environment, "annotate", "sync")
    return "first@example.com", "a secret of the first"


@pytest.fixture(scope="module")
def played(environment: dict[str, str], server: LabelStudioServer) -> Played:
    """Eight people work at the same time; puller and server are killed now and then, and connections are cut."""
    said = run_darkroom(environment, "annotate", "sync")
    assert "poster.png: too_large_image, 20001x10000 = 200,010,000 pixels, the limit is 200,000,000" in said
    with Workspace.from_environment(environment) as workspace, connect(workspace, {}) as studio:
        pool = workspace.tables.read(POOL, PoolImage)
        assert len(pool) == N_IMAGES
        numbers = {item.image.sha256: int(item.source_row[:3]) for item in pool}
        with cutting_proxy(urlsplit(studio.url).port or 0) as proxy:
            room = Room(proxy.url, numbers, sizes=SIZE)
            with at_work(everybody(studio, room)):
                through = environment | {URL: proxy.url, TOKEN: server.admin.token}
                pull_and_be_killed(through, workspace, room, server)
                finish(workspace, studio, room, pool)
            assert proxy.n_cut
        assert not room.errors, room.errors
        finish(workspace, studio, room, pool)
    return Played(numbers, room)


@pytest.mark.soak
def test_a_campaign_ends_as_planned_whoever_was_faster_and_however_often_the_puller_was_killed(
    played: Played, environment: dict[str, str]
) -> None:
    with Workspace.from_environment(environment) as workspace, connect(workspace, {}) as studio:
        check_results(workspace, studio, played.numbers, played.room)


@pytest.mark.soak
def test_what_people_accepted_becomes_rows_to_train_on_also_after_a_kill(
    played: Played, environment: dict[str, str]
) -> None:
    with Workspace.from_environment(environment) as workspace:
        check_rows_to_train_on(workspace, environment)


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
            n_planted = sum(
                bool(work.request.planted_error) for _, works in journal.record_tasks(ROUNDS) for work in works
            )
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
        hits, seed = journal.blocked_submissions(), campaign.seeded(journal.seed).seed
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
    chosen = {
        n for digest, n in numbers.items() if is_selected(campaign.gold_share, "gold", campaign.name, digest, seed=seed)
    }
    assert set(golds) == chosen - {7, 17}, "every planted error was looked at"
    for number, checks in golds.items():
        checkers = {event.person for event in accepted[number].history if event.attempt == 0}
        assert all(check.person not in checkers for check in checks), "who knew the record got its planted copy"
        assert all(check.caught for check in checks if check.error == "wrong_answer")
    refused = [one.reason for one in (error for state in kept for error in state.state.invalid)]
    assert room.tallies["late edits"] == 1
    assert set(refused) == {"duplicate_submission"}
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
            assert set(keys) == journal.n_excluded(keys).keys(), f"{round} has tasks that nobody demanded"


@pytest.mark.soak
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
            with pytest.raises(AnnotationError, match=r"rejects the token.*`darkroom annotate up`"):
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


@pytest.mark.parametrize("campaign", first_quickly(["begun", "played"]))
def test_a_backup_of_a_running_server_goes_on_elsewhere(
    request: pytest.FixtureRequest,
    campaign: str,
    environment: dict[str, str],
    home: Path,
    server: LabelStudioServer,
    tmp_path: Path,
) -> None:
    """With accounts, logins, projects and the journal; ``DARKROOM_TEST_POSTGRES=1``: a dump into another database."""
    done = request.getfixturevalue(campaign)
    login = done if campaign == "begun" else ("annotator0@example.com", "a secret 0 of theirs")
    run_darkroom(environment, "annotate", "backup", str(tmp_path / "backup"))
    environment = {**environment, "DARKROOM_HOME": str(tmp_path / "home")}
    for kept in ("images", "tables"):
        shutil.copytree(home / kept, tmp_path / "home" / kept)
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
                before = (journal.last_version, journal.progress())
                handed_out = Sync(journal, studio, campaign, say=lambda text: None).run(pool)
                assert (handed_out, (journal.last_version, journal.progress())) == ({}, before)
                added = [PoolImage(ImageRef("f" * 64, *SIZE, "RGB", "JPEG"), "ours", "new", "CC0-1.0")]
                assert Sync(journal, studio, campaign, say=lambda text: None).run(pool + added) == {"annotate": 1}
            assert logs_in(started.url, *login)
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
