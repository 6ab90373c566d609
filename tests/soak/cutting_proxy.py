"""A TCP proxy that cuts some connections after a random number of bytes, as bad lines and proxies do."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MOST_BYTES = 20_000
"""Enough to cut between headers and body, in a page of tasks, and after a request that the server answers."""


class CuttingProxy:
    """Listens on the loopback interface; ``share`` of the connections are cut."""

    def __init__(self, port: int, *, share: float, seed: int) -> None:
        self._target, self._share, self._chance = port, share, random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.n_connections = self.n_cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self.n_connections += 1
                is_cut = self._chance.random() < self._share
                limit = self._chance.randrange(MOST_BYTES) if is_cut else None
                threading.Thread(target=self._serve, args=(client, limit), daemon=True).start()

    def _serve(self, client: socket.socket, limit: int | None) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        left = [limit]
        threading.Thread(target=self._copy, args=(client, server, left), daemon=True).start()
        self._copy(server, client, left)

    def _copy(self, source: socket.socket, target: socket.socket, left: list[int | None]) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                limit = left[0]
                if limit is not None and len(data) > limit:
                    target.sendall(data[:limit])
                    self.n_cut += 1
                    break
                left[0] = None if limit is None else limit - len(data)
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def cutting_proxy(port: int, *, share: float = 0.1, seed: int = 0) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(port, share=share, seed=seed)
    try:
        yield proxy
    finally:
        proxy.close()
