"""The client with which datasets are read from the Hugging Face hub: where there is no network it gives up at once.

`huggingface_hub` repeats a request that found no connection five times, for half a minute, and prints each. A process
that has reached the hub before keeps to that: its network is there, and what failed may pass.
"""

from functools import cache
from typing import Any, ClassVar

import httpx2
from huggingface_hub import get_session, set_client_factory
from huggingface_hub.errors import OfflineModeIsEnabled


class _Client(httpx2.Client):
    has_connected: ClassVar[bool] = False
    """In this process: the hub's client is closed and made anew after an error."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Raises ``OfflineModeIsEnabled``, which is not repeated, where no request has found a connection yet."""
        try:
            response = super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if _Client.has_connected:
                raise
            raise OfflineModeIsEnabled(f"{request.url.host} cannot be reached: {error}") from error
        _Client.has_connected = True
        return response


@cache
def give_up_without_a_network() -> None:
    """Makes it the client of all requests to the hub in this process, otherwise as the hub's own is set up."""
    standard = get_session()
    set_client_factory(
        lambda: _Client(
            event_hooks=standard.event_hooks, follow_redirects=standard.follow_redirects, timeout=standard.timeout
        )
    )
