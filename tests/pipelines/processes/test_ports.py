"""Addresses and ports of servers on this machine."""

from __future__ import annotations

import socket

import pytest

from darkroom.pipelines.processes.process_sessions import ProcessError, free_port, url_of


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
    ],
)
def test_a_server_that_listens_everywhere_is_asked_here(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ProcessError, match=rf"cannot listen on 127.0.0.1 port {port} .*omit --port"):
            free_port("127.0.0.1", port)


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port("127.0.0.1")))
