"""How services listen."""

import socket

import httpx
import pytest

from darkroom.pipelines.services.listening import KEEP_ALIVE_SECONDS, listen
from darkroom.sandbox.errors import UserError


def test_an_idle_connection_is_the_clients_to_close() -> None:
    expiry = httpx.Limits().keepalive_expiry
    assert expiry is not None
    assert expiry < KEEP_ALIVE_SECONDS


@pytest.mark.parametrize("host", ["nonsense.invalid", "192.0.2.1"])
def test_a_host_that_is_not_this_machines_is_named_and_no_port(host: str) -> None:
    with pytest.raises(UserError, match=rf"cannot listen at {host}:0: (?!Unknown error).*; correct --host$"):
        listen(None, host, 0, str)


def test_a_port_that_is_taken_is_to_be_another() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UserError, match=r"in use; choose another --port$"),
    ):
        listen(None, "127.0.0.1", taken.getsockname()[1], str)
