"""OpenEnv's WebSocket: sessions, their errors, and whom it answers."""

import pytest
from starlette.testclient import TestClient, WebSocketDenialResponse

from darkroom.pipelines.models.protocols import Thyme
from darkroom.train.environment.episodes import Episodes
from darkroom.train.environment.http_api import application
from darkroom.train.rl.methods import Judges, named_method, settings_of
from darkroom.train.rl.rollouts.prompts import open_prompts

SOCKET = "ws://127.0.0.1/ws"


@pytest.fixture
def client(dataset):
    settings = settings_of("thyme", protocol="thyme")

    def open_client(token=""):
        limits = {"most_open": 1, "idle_seconds": 600.0}
        episodes = Episodes(open_prompts(dataset), settings, named_method("thyme"), Judges(), **limits)
        app = application(episodes, version="1", host="127.0.0.1", token=token, compression=0)
        return TestClient(app, base_url="http://127.0.0.1")

    return open_client


def ask(socket, kind, **data):
    socket.send_json({"type": kind, "data": data} if data else {"type": kind})
    return socket.receive_json()


def test_a_session_plays_one_episode_after_the_other(client):
    answer = Thyme().write_answer("So it is.", "red", first=True)
    with client() as http, http.websocket_connect(SOCKET) as socket:
        for n_correct in (1.0, 0.0):  # the rows 0 and 1: red and green
            opened = ask(socket, "reset", row=int(1 - n_correct))
            assert (opened["type"], opened["data"]["done"], opened["data"]["reward"]) == ("observation", False, None)
            end = ask(socket, "step", text=answer)["data"]
            assert (end["done"], end["observation"]["score"]["correct"]) == (True, n_correct)
            assert end["reward"] == end["observation"]["score"]["reward"]
            state = ask(socket, "state")["data"]
            assert state == {"episode_id": opened["data"]["observation"]["episode"], "step_count": 1}
        assert http.get("/health").json()["episodes"] == 1


def test_an_episode_ends_with_its_session(client):
    with client() as http:
        for _ in range(2):  # of which no more than one may be open
            with http.websocket_connect(SOCKET) as socket:
                assert ask(socket, "reset")["type"] == "observation"
                socket.send_json({"type": "close"})
                assert socket.receive()["type"] == "websocket.close"
        assert http.get("/health").json()["episodes"] == 0


def test_errors_say_what_is_wrong_and_end_nothing(client):
    with client() as http, http.websocket_connect(SOCKET) as socket:
        assert ask(socket, "step", text="x")["data"]["message"] == "no episode is open: reset first"
        assert ask(socket, "reset", row=9)["data"]["message"] == "no row 9; there are 3, from 0 on"
        assert ask(socket, "dance")["data"]["code"] == "invalid_request"
        assert ask(socket, "reset", seed=-1)["type"] == "error"
        for text in ("[1]", "{", '{"type": "step", "data": [1]}'):
            socket.send_text(text)
            assert socket.receive_json()["data"]["code"] == "invalid_request"
        socket.send_bytes(b"\x00\xff")
        assert socket.receive_json()["data"]["code"] == "invalid_request"
        socket.send_bytes(b'{"type": "state"}')
        assert socket.receive_json()["type"] == "state"
        assert ask(socket, "reset")["type"] == "observation"
        assert ask(socket, "step", words="x")["type"] == "error"
        assert ask(socket, "step", text="no tags")["data"]["done"]


def test_a_page_in_a_browser_and_a_client_without_the_token_are_refused(client):
    with (
        client() as http,
        pytest.raises(WebSocketDenialResponse) as refused,
        http.websocket_connect(SOCKET, headers={"Origin": "http://127.0.0.1:8767"}),
    ):
        pass
    assert refused.value.status_code == 401
    with client(token="secret") as http:
        with pytest.raises(WebSocketDenialResponse) as refused, http.websocket_connect(SOCKET):
            pass
        assert refused.value.status_code == 401
        with http.websocket_connect(SOCKET, headers={"Authorization": "Bearer secret"}) as socket:
            assert ask(socket, "reset")["type"] == "observation"
