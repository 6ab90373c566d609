"""Every address of the installed Label Studio, called by an annotator, a checker, an expert and nobody."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from darkroom.annotation._plugin.darkroom_studio.access import AccessTable
from darkroom.annotation.label_studio.server import PLUGIN, LabelStudioServer, connect, server_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.pipelines.storage.workspace import Workspace
from tests.e2e.annotators import boxes, http_client, text
from tests.image_files import encoded
from tests.own_studio import running
from tests.ports import free_port
from tests.soak.access_walk import (
    ANN,
    BOB,
    EVE,
    FILTER,
    GOLD,
    HIGHEST,
    NOBODY,
    PRACTISED,
    SIZE,
    ZOE,
    Call,
    Campaign,
    log_in,
    reads,
    writes,
)

TABLE = AccessTable.load()
LIST_ROUTES = """
import sys, django; django.setup()
from pathlib import Path
from django.urls import get_resolver
def routes(resolver):  # joined as URLResolver.resolve does
    for pattern in resolver.url_patterns:
        if hasattr(pattern, "url_patterns"):
            yield from (resolver._join_route(str(pattern.pattern), route) for route in routes(pattern))
        else:
            yield str(pattern.pattern)
found = sorted({route.removeprefix("^") for route in routes(get_resolver())})
Path(sys.argv[1]).write_text("\\n".join(found) + "\\n")  # Label Studio prints lines of its own
"""
STAFF_ROUTES = frozenset((PLUGIN / "darkroom_studio" / "staff_routes.txt").read_text().split())
PEOPLE = {"annotator": ZOE, "checker": BOB, "expert": EVE, "anonymous": NOBODY}
N_THREADS = 6
ENDS_THE_WALK = {"api/current-user/reset-token/", "logout/?$"}
"""Its caller would be nobody afterwards."""
SHADOW = "version/"
"""Label Studio's route for it is not anchored: it answers for every address with these letters."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[LabelStudioServer]:
    home = tmp_path_factory.mktemp("access") / "home"
    data = Path(os.environ.get("DARKROOM_HOME") or root / "data").absolute()
    environments = os.environ.get("DARKROOM_ENVIRONMENTS") or str(data / "environments")
    studio = server_of(Workspace.from_environment({"DARKROOM_HOME": str(home), "DARKROOM_ENVIRONMENTS": environments}))
    with running(studio, port=free_port()):
        yield studio


@pytest.fixture(scope="module")
def campaign(server: LabelStudioServer) -> Iterator[Campaign]:
    workspace = Workspace.from_environment({"DARKROOM_HOME": str(server.folder.parent)})
    with Journal(server.folder) as journal, connect(workspace, {}) as studio:
        made = Campaign(studio, journal, server.admin.token)
        made.play()
        yield made


@pytest.fixture(scope="module")
def routes(server: LabelStudioServer, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """As this server's Django has them."""
    path = tmp_path_factory.mktemp("routes") / "routes.txt"
    python = server.environment.folder / "bin" / "python"
    variables = server.variables(None) | {"LABEL_STUDIO_BASE_DATA_DIR": str(path.parent)}
    command = [str(python), "-c", LIST_ROUTES, str(path)]
    subprocess.run(command, env=variables, cwd=path.parent, check=True, capture_output=True, timeout=900)
    return path.read_text().splitlines()


def test_every_route_of_this_version_is_classified_once(routes: list[str]) -> None:
    assert sorted(set(routes) - STAFF_ROUTES - set(TABLE.rules)) == [], (
        "new: add them to access.yaml or staff_routes.txt"
    )
    assert sorted((STAFF_ROUTES | set(TABLE.rules)) - set(routes)) == [], "gone: take them out"
    assert STAFF_ROUTES & set(TABLE.rules) == set()


def test_the_canaries_can_be_found(campaign: Campaign) -> None:
    """By the admin, at the addresses that the fence closes; a walk that finds none of them would prove nothing."""
    with http_client(campaign.studio.url, campaign.admin_token) as admin:
        paths = ["/api/tasks?fields=all&project={}&page_size=100", "/api/tasks/{}/drafts", "/darkroom/people"]
        said = "".join(admin.get(path.format(n)).text for path in paths for n in range(1, HIGHEST))
    said = said.replace('"ground_truth":true', GOLD)
    assert [word for word in campaign.canaries if word not in said and not word.startswith(PRACTISED)] == []
    assert len(campaign.canaries) > 20


@pytest.mark.parametrize("who", PEOPLE)
def test_nobody_reads_of_others_anywhere(campaign: Campaign, routes: list[str], who: str) -> None:
    project, walked = campaign.project("cross_check"), sorted(set(routes) - ENDS_THE_WALK)
    calls = [call for route in walked for call in reads(route, rules=TABLE.rules.get(route, ()), project=project)]
    answers = walk(campaign, PEOPLE[who], calls)
    check_walk(campaign, PEOPLE[who], answers)
    seen = {
        call.path for call, response in answers if call.route == "api/tasks/<int:pk>/" and response.status_code == 200
    }
    assert seen == {f"/api/tasks/{task}/" for task in campaign.given.get(PEOPLE[who], ())}


@pytest.mark.parametrize("who", PEOPLE)
def test_nobody_changes_what_is_not_theirs(campaign: Campaign, routes: list[str], who: str) -> None:
    """The table does not know roles: what is closed to one is closed to all, so one of them tries the closed ones."""
    walked = [route for route in sorted(set(routes) - ENDS_THE_WALK) if who == "annotator" or route in TABLE.rules]
    calls = [call for route in walked for call in writes(route, is_open=route in TABLE.rules)]
    check_walk(campaign, PEOPLE[who], walk(campaign, PEOPLE[who], calls))


def test_what_was_once_possible_is_refused(campaign: Campaign) -> None:
    number = next(person.person_id for person in campaign.studio.people() if person.email == BOB)
    task, written, own = campaign.given[BOB][-1], campaign.given[ANN][0], campaign.annotations(BOB)
    attempts: list[tuple[str, str, object]] = [
        ("GET", f"/api/tasks?project={campaign.project('cross_check')}&fields=all", None),
        ("GET", f"/api/tasks/{task}/drafts", None),
        ("GET", f"/api/tasks/{task}?review=true", None),
        ("PATCH", f"/api/users/{number}", {"username": EVE}),
        ("PATCH", f"/api/users/{number}/", {"first_name": "<b>Eve</b>"}),
        ("POST", f"/api/users/{number}/avatar", {}),
        ("POST", "/user/account/", {"first_name": "Eve"}),
        ("PATCH", f"/api/annotations/{own.submitted}/", {"ground_truth": True}),
        ("PATCH", f"/api/annotations/{own.submitted}/", {"completed_by": 1}),
        ("PATCH", f"/api/annotations/{own.reserved}/", {"result": boxes(SIZE, (4.0, 3.0))}),
        ("POST", f"/api/tasks/{written}/annotations/", {"result": boxes(SIZE, (4.0, 3.0))}),
        ("POST", f"/api/tasks/{written}/drafts", {"result": []}),
    ]
    before = campaign.studio.people()
    with closing(log_in(campaign.studio.url, BOB)) as client:
        found = [(*tried, client.request(tried[0], tried[1], json=tried[2]).status_code) for tried in attempts]
        # one key in UTF-8, three in UTF-7, which Label Studio reads too
        hidden = b'{"unique_id": "a+ACI-, +ACI-ground+AF8-truth+ACI-: true, +ACI-unique+AF8-id+ACI-: +ACI-b"}'
        headers = {"Content-Type": "application/json; charset=utf-7"}
        assert client.patch(f"/api/annotations/{own.submitted}/", content=hidden, headers=headers).status_code == 400
        foreign = f"/api/tasks/{written}/annotations/"
        assert client.post(foreign, json={"result": []}).json()["detail"] == "This task is not yours.", "nothing of it"
    assert [row for row in found if row[-1] != 403] == []
    assert campaign.studio.people() == before


def test_a_filter_of_the_next_task_answers_nothing_about_others(campaign: Campaign) -> None:
    body = {"filters": {"conjunction": "and", "items": [FILTER]}, "ordering": ["-tasks:annotators"]}
    path = f"/api/dm/actions?id=next_task&project={campaign.project('cross_check')}"
    with closing(log_in(campaign.studio.url, BOB)) as client:
        assert [client.post(path, json=sent).json()["id"] for sent in ({}, body)] == [campaign.given[BOB][-1]] * 2


def test_a_page_of_a_project_leads_to_its_label_stream(campaign: Campaign) -> None:
    project = campaign.project("cross_check")
    with closing(log_in(campaign.studio.url, BOB)) as client:
        for page in ("", "data", "data?tab=1&labeling=1", "data?task=3"):
            said = client.get(f"/projects/{project}/{page}")
            assert (said.status_code, said.headers["location"]) == (302, f"/projects/{project}/data?labeling=1")
        assert client.get(f"/projects/{project}/data?labeling=1").status_code == 200
        assert client.get(f"/projects/{project}/settings/").status_code == 403


def test_a_checker_gets_checks_and_nothing_to_write(campaign: Campaign) -> None:
    """And where annotators are not to check, only checkers do."""
    checks, writing = campaign.project("cross_check"), campaign.project("annotate")
    with closing(log_in(campaign.studio.url, BOB)) as bob, closing(log_in(campaign.studio.url, ZOE)) as zoe:

        def statuses(client: httpx.Client, project: int) -> list[int]:
            answers = (
                client.get(f"/projects/{project}/data?labeling=1"),
                client.get(f"/api/projects/{project}/"),
                client.post(f"/api/dm/actions?id=next_task&project={project}", json={}),
            )
            return [answer.status_code for answer in answers]

        assert statuses(bob, writing) == [403] * 3
        assert (
            "It is for the role annotator; your account has the role checker" in bob.get(f"/projects/{writing}/").text
        )
        assert statuses(bob, checks) == [200] * 3
        assert statuses(zoe, checks) == [200] * 3
        start = bob.get("/projects/").text
        assert ("Walked: check questions" in start, "write questions" in start) == (True, False)
        campaign.studio.open_to(checks, "walked", "cross_check", ["checker"])
        try:
            assert (statuses(bob, checks), statuses(zoe, checks)) == ([200] * 3, [403] * 3)
            assert "Walked: check questions" not in zoe.get("/projects/").text
        finally:
            campaign.studio.open_to(checks, "walked", "cross_check", ["annotator", "checker"])
        assert statuses(zoe, checks) == [200] * 3


def walk(campaign: Campaign, email: str, calls: list[Call]) -> list[tuple[Call, httpx.Response]]:
    def send(call: Call) -> httpx.Response:
        return client.request(call.method, call.path, params=call.parameters, json=call.body)

    client = log_in(campaign.studio.url, email)
    with closing(client), ThreadPoolExecutor(N_THREADS) as threads:
        return list(zip(calls, threads.map(send, calls), strict=True))


def check_walk(campaign: Campaign, email: str, answers: list[tuple[Call, httpx.Response]]) -> None:
    leaks = {(c.method, str(r.url), *found) for c, r in answers if (found := campaign.leaks(email, spaced(r)))}
    assert not leaks
    refused = (403,) if email else (401, 403)
    closed = [(call, response) for call, response in answers if not may(call, email) and SHADOW not in call.path]
    open_ = [(call.method, call.path, said.status_code) for call, said in closed if said.status_code not in refused]
    assert not open_
    failed = [(c.method, str(r.url), r.status_code) for c, r in answers if r.status_code >= 500]
    assert not failed


def may(call: Call, email: str) -> bool:
    rule = TABLE.find(call.route, call.method)
    return rule is not None and (rule.public or bool(email))


def spaced(response: httpx.Response) -> str:
    """Headers and text, with JSON as Python writes it."""
    return f"{response.headers}\n{response.text}".replace('"ground_truth":true', GOLD)


def test_a_checker_gets_the_record_after_an_own_answer_that_stays(campaign: Campaign) -> None:
    """Every way to a task, a submission and an edit, before and after; the first answer is the one that counts."""
    task = campaign.given[BOB][-1]
    path, result = f"/api/tasks/{task}/annotations/", campaign.check(BOB, "late")
    with closing(log_in(campaign.studio.url, BOB)) as client:

        def served() -> list[dict[str, Any]]:
            stream = client.post(f"/api/dm/actions?id=next_task&project={campaign.project('cross_check')}", json={})
            return [stream.json(), client.get(f"/api/tasks/{task}/").json()]

        assert [(one["id"], one["data"]["record_shown"], one["predictions"]) for one in served()] == [
            (task, "", [])
        ] * 2
        early = client.post(path, json={"result": result, "lead_time": 3.0})
        assert (early.status_code, "Answer the question before you judge" in early.text) == (403, True)
        for wrong in ({}, {"answer": " \u200b"}, {"answer": "x\0y"}, {"answer": "x" * 1001}, {"answer": ["x"]}):
            assert client.post(f"/darkroom/tasks/{task}/answer", json=wrong).status_code == 400, wrong
        assert served()[0]["predictions"] == []
        for sent in (" Canaryblindlate ", "something else, once the record is known"):
            said = client.post(f"/darkroom/tasks/{task}/answer", json={"answer": sent})
            assert (said.status_code, said.json()) == (200, {"answer": "Canaryblindlate"})
        for one in served():
            assert "Canaryanswer" in one["data"]["record_shown"]
            assert {entry["from_name"] for entry in one["predictions"][0]["result"]} > {"box", "answer", "blind_answer"}
        other = [text("blind_answer", "what the record says"), *result[1:]]
        refused = client.post(path, json={"result": other, "lead_time": 3.0})
        assert (refused.status_code, "It cannot be changed" in refused.text) == (403, True)
        made = client.post(path, json={"result": result, "lead_time": 3.0})
        assert made.status_code == 201, made.text
        edit = f"/api/annotations/{made.json()['id']}/"
        assert client.patch(edit, json={"result": other}).status_code == 403
        assert client.patch(edit, json={"result": result}).status_code == 200


def test_an_own_answer_is_only_for_ones_own_cross_checks(campaign: Campaign) -> None:
    tried = (
        (BOB, campaign.given[ANN][0], 403),
        (NOBODY, campaign.given[BOB][0], 401),
        (ANN, campaign.given[ANN][0], 404),
    )
    for who, task, status in tried:
        with closing(log_in(campaign.studio.url, who)) as client:
            assert client.post(f"/darkroom/tasks/{task}/answer", json={"answer": "x"}).status_code == status


def test_a_check_that_an_earlier_version_handed_out_goes_on_as_it_began(campaign: Campaign) -> None:
    """Its gate asks for no answer beforehand; the record is in its page."""
    task = campaign.take(ZOE, "cross_check")
    data = {**task["data"], "record_shown": "**Answer:** of old"}
    data["gate"] = {key: value for key, value in data["gate"].items() if key != "blind_first"}
    data.pop("own_answer")
    admin = {"Authorization": f"Token {campaign.admin_token}"}
    path = f"{campaign.studio.url}/api/tasks/{task['id']}/"
    changed = httpx.patch(path, json={"data": data}, headers=admin, timeout=300, trust_env=False)
    assert changed.status_code == 200, changed.text
    with closing(log_in(campaign.studio.url, ZOE)) as client:
        shown = client.get(f"/api/tasks/{task['id']}/").json()
        assert (shown["data"]["record_shown"], len(shown["predictions"])) == ("**Answer:** of old", 1)
        sent = {"result": campaign.check(ZOE, "old"), "lead_time": 3.0}
        assert client.post(f"/api/tasks/{task['id']}/annotations/", json=sent).status_code == 201


@pytest.mark.parametrize(("size", "status"), [((4000, 3000), 200), ((10_000, 6400), 413)])
def test_an_image_is_served_that_a_browser_can_show(
    server: LabelStudioServer, campaign: Campaign, size: tuple[int, int], status: int
) -> None:
    data = encoded(Image.new("1", size))
    sha256 = hashlib.sha256(data).hexdigest()
    path = Path(server.images_url) / sha256[:2] / sha256
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    with closing(log_in(campaign.studio.url, ANN)) as client:
        assert client.get(f"/darkroom/images/{sha256}").status_code == status
