"""Requests to the hub: without a network the first is the last one; a network that was there is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx2
import pytest
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import _http

from darkroom.pipelines.sources import tabular
from tests.json_endpoint import JsonHandler, endpoint

NOBODY = "http://127.0.0.1:9/datasets/someone/something"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The seconds that the hub's client would have waited between its tries, in a process that begins here."""
    seconds: list[float] = []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(_http, "_GLOBAL_CLIENT_FACTORY", _http._GLOBAL_CLIENT_FACTORY)
    ours, sleep = threading.current_thread(), time.sleep
    monkeypatch.setattr("time.sleep", lambda s: (seconds.append if threading.current_thread() is ours else sleep)(s))
    monkeypatch.setattr(tabular._Client, "has_connected", False)
    tabular.give_up_without_a_network.cache_clear()
    tabular.give_up_without_a_network()
    yield seconds
    _http.close_session()
    tabular.give_up_without_a_network.cache_clear()


def test_without_a_network_nothing_is_repeated(waits: list[float]) -> None:
    with pytest.raises(OfflineModeIsEnabled, match=r"127\.0\.0\.1 cannot be reached: .*refused"):
        _http.http_backoff("GET", NOBODY)
    assert waits == []


def test_a_connection_that_is_lost_is_tried_again_as_ever(waits: list[float]) -> None:
    with endpoint(JsonHandler) as url:
        assert _http.http_backoff("GET", url).status_code == 200
    with pytest.raises(httpx2.ConnectError):
        _http.http_backoff("GET", NOBODY)
    assert waits == [1, 2, 4, 8, 8]


def test_requests_are_otherwise_those_of_the_hubs_own_client(waits: list[float]) -> None:
    ours, standard = _http.get_session(), _http.default_client_factory()
    for name in ("event_hooks", "follow_redirects", "timeout", "trust_env"):
        assert getattr(ours, name) == getattr(standard, name), name
