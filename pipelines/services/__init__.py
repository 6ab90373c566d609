"""Darkroom as a service, for programs that are not part of it: the sandbox over MCP and over plain HTTP.

A client opens a session with a task's images and gets its name, a secret. Tools run in it as they do in process: the
same pool, the same texts, the same pixels. Needs the extra ``serve``. What all services share (addresses, errors,
files, what clients hold open) is here as well; the others: ``darkroom.train.agent``, ``darkroom.train.environment``.
"""

import os
import secrets

from darkroom.sandbox.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_VARIABLE = "DARKROOM_SERVICE_TOKEN"


def token_for(host: str) -> str:
    """The environment's token. Raises ``UserError`` without one where other machines are admitted."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if host not in LOOPBACK and not token:
        raise UserError(f"--host {host} admits other machines: set {TOKEN_VARIABLE} to a secret of your own")
    return token


def is_let_in(*brought: str, token: str) -> bool:
    """Return whether a client that brought these words has the token (empty: everybody has), in constant time."""
    return not token or any(secrets.compare_digest(word.encode(), token.encode()) for word in brought)
