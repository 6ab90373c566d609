"""Who is let in: one rule for the token of all services, and of the served gallery."""

import secrets

from darkroom.pipelines.services import LOOPBACK, TOKEN_VARIABLE
from darkroom.sandbox.errors import UserError


def require_token(host: str, token: str) -> None:
    """Raises ``UserError`` where other machines would be let in without a token."""
    if host not in LOOPBACK and not token:
        raise UserError(f"--host {host} admits other machines: set {TOKEN_VARIABLE} to a secret of your own")


def is_let_in(*brought: str, token: str) -> bool:
    """Whether a client that brought these words has the token (empty: everybody has), compared in constant time."""
    return not token or any(secrets.compare_digest(word.encode(), token.encode()) for word in brought)
