"""How services listen."""

import httpx

from pipelines.services.listening import KEEP_ALIVE_SECONDS


def test_an_idle_connection_is_the_clients_to_close() -> None:
    expiry = httpx.Limits().keepalive_expiry
    assert expiry is not None
    assert expiry < KEEP_ALIVE_SECONDS
