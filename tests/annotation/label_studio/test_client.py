"""What the toolkit says and does when the server is down, slow, refuses, or gives nonsense: against a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from darkroom.annotation import AnnotationError, ServerUnreachable
from darkroom.annotation.label_studio.client import MOST_TITLE, LabelStudioClient, error_sentence, project_title
from darkroom.annotation.label_studio.forms import ROUND_FORMS
from tests.json_endpoint import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([]).serving() as server:
        yield server


@contextmanager
def studio_at(url: str) -> Iterator[LabelStudioClient]:
    with LabelStudioClient(url, "token", seconds=5, pauses=(0.01, 0.01)) as studio:
        yield studio


PERSON = {"id": 2, "email": "ann@example.com", "name": "Ann", "role": "annotator", "token": "x"}


def test_a_server_in_trouble_is_asked_again(server: ScriptedServer) -> None:
    server.says((500, {"detail": "oops"}), (503, {}), (200, {"people": [PERSON]}))
    with studio_at(server.url) as studio:
        assert [person.email for person in studio.people()] == ["ann@example.com"]
    assert len(server.asked) == 3


CALLS: dict[str, Callable[[LabelStudioClient], Any]] = {
    "people": lambda studio: studio.people(),
    "hits": lambda studio: studio.blocked_submissions(0),
    "project": lambda studio: studio.check_project(1, "annotate"),
    "changes": lambda studio: list(studio.changed_since(1, "", n_excluded=0)),
    "tasks": lambda studio: list(studio.tasks_after(1, 0)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refused_token_says_what_to_do(server: ScriptedServer, call: Callable[[LabelStudioClient], Any]) -> None:
    server.says((401, {"detail": "Invalid token."}))
    with (
        studio_at(server.url) as studio,
        pytest.raises(AnnotationError, match=r"rejects the token.*DARKROOM_STUDIO_TOKEN"),
    ):
        call(studio)
    assert len(server.asked) == 1, "asking again with the same token is of no use"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_server_that_stays_in_trouble_is_named_with_what_it_said(
    server: ScriptedServer, call: Callable[[LabelStudioClient], Any]
) -> None:
    server.says((500, {"detail": "disk is full"}))
    with studio_at(server.url) as studio, pytest.raises(ServerUnreachable, match=r"fails \(500\).*disk is full"):
        call(studio)
    assert len(server.asked) == 3


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_server_that_is_down_says_where_to_look(call: Callable[[LabelStudioClient], Any]) -> None:
    with ScriptedServer([]).serving() as server:
        pass
    with studio_at(server.url) as studio, pytest.raises(ServerUnreachable, match="darkroom annotate status"):
        call(studio)


def test_no_request_goes_out_on_a_connection_that_the_server_may_be_closing() -> None:
    """It closes one that was idle for two seconds; here in the worst moment: when the next request is on its way."""
    body = json.dumps({"people": [PERSON]}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def serve(connection: socket.socket) -> None:
        with connection:
            while connection.recv(65_536):
                connection.sendall(answer)
                if connection.recv(1, socket.MSG_PEEK):  # another request: it is lost
                    return

    def accept() -> None:
        for _ in range(2):
            serve(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        with LabelStudioClient(
            f"http://127.0.0.1:{listener.getsockname()[1]}", "token", seconds=60, pauses=()
        ) as studio:
            for pause in (1.2, 0):
                assert len(studio.people()) == 1
                time.sleep(pause)
        accepting.join(60)


def test_an_import_is_never_tried_twice(server: ScriptedServer) -> None:
    server.says((502, {"detail": "gateway"}))
    with studio_at(server.url) as studio, pytest.raises(ServerUnreachable):
        studio.import_tasks(1, [{"data": {"key": "a"}}])
    assert len(server.asked) == 1


def test_a_project_that_is_gone_is_told_from_one_that_is_there(server: ScriptedServer) -> None:
    server.says((404, {"detail": "Not found."}))
    with studio_at(server.url) as studio:
        assert not studio.check_project(7, "annotate")


def test_a_form_that_was_changed_is_named_with_its_remedy(server: ScriptedServer) -> None:
    server.says((200, {"id": 7, "title": "x", "label_config": "<View/>"}))
    with studio_at(server.url) as studio, pytest.raises(AnnotationError, match="--reset-forms"):
        studio.check_project(7, "annotate")


def test_a_label_studio_without_the_plug_in_is_recognised(server: ScriptedServer) -> None:
    server.says((404, {"detail": "Not found."}))
    with studio_at(server.url) as studio, pytest.raises(AnnotationError, match="without Darkroom's plug-in"):
        studio.people()


def test_nonsense_instead_of_json_is_a_server_in_trouble(server: ScriptedServer) -> None:
    server.says((200, "<html>welcome to the proxy</html>"))
    with studio_at(server.url) as studio, pytest.raises(ServerUnreachable, match="answered with invalid JSON"):
        studio.people()


def test_a_refusal_is_passed_on_with_its_reason(server: ScriptedServer) -> None:
    server.says((400, {"detail": "This password is too common."}))
    with studio_at(server.url) as studio, pytest.raises(AnnotationError, match="too common"):
        studio.add_person("a@example.com", role="annotator", password="password")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('{"detail": "The name \\u2013 too short"}', "The name \u2013 too short."),
        ({"detail": "Only the admin may do that."}, "Only the admin may do that."),
        (
            {"detail": "Validation error", "validation_errors": {"title": ["Too long."], "non_field_errors": ["No."]}},
            "title: Too long. No.",
        ),
        ({"detail": "Not saved", "validation_errors": {"non_field_errors": ["a", "b"]}}, "Not saved. a. b."),
        ("<html>\n  502 Bad Gateway", "<html> 502 Bad Gateway"),
        ({}, "no reason given"),
        (None, "None"),
    ],
)
def test_an_error_of_the_server_is_a_sentence(body: Any, sentence: str) -> None:
    assert error_sentence(body) == sentence


def test_no_json_reaches_the_terminal(server: ScriptedServer) -> None:
    server.says((400, {"detail": "a role is one of annotator \u2013 expert; found 'boss'"}))
    with (
        LabelStudioClient(server.url, "x", pauses=()) as studio,
        pytest.raises(AnnotationError, match=r"\(400\): a role is one of annotator \u2013 expert; found 'boss'\.$"),
    ):
        studio.people()


@pytest.mark.parametrize("round", sorted(ROUND_FORMS))
def test_a_project_has_the_title_that_a_person_would_give_it(round: str) -> None:
    title = project_title("streets", round)
    assert title == f"Streets: {ROUND_FORMS[round].title}"
    assert len(project_title("x" * 31, round)) <= MOST_TITLE
