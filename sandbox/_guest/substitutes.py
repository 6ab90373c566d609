"""What the filter refuses and ordinary code uses, done by other means."""

import os
import shutil
import socket
from typing import Any


def install_pipe() -> None:
    """`os.pipe` on a pair of sockets: the buffers of pipes are one budget for all processes of a user."""

    def pipe() -> tuple[int, int]:
        reading, writing = socket.socketpair()
        reading.shutdown(socket.SHUT_WR)
        return reading.detach(), writing.detach()

    def pipe2(flags: int) -> tuple[int, int]:
        fds = pipe()
        for fd in fds:
            os.set_blocking(fd, not flags & os.O_NONBLOCK)
        return fds

    os.pipe, os.pipe2 = pipe, pipe2


def install_copy() -> None:
    """`shutil.copy` and `copytree` without modes and times, for the lite tier, where both belong to the host."""

    def copy_nothing(*_: Any, **__: Any) -> None:
        pass

    shutil.copymode = shutil.copystat = copy_nothing
