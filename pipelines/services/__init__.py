"""Darkroom as a service, for programs that are not part of it: the sandbox over MCP and over plain HTTP.

A client opens a session with a task's images and gets its name, a secret. Tools run in it as they do in process: the
same pool, the same texts, the same pixels. Needs the extra ``serve``. What all services share (addresses, errors,
files, what clients hold open) is here as well; ``darkroom.train.agent`` and ``darkroom.train.environment`` are the
others.
"""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_VARIABLE = "DARKROOM_SERVICE_TOKEN"
