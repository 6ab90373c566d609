"""What ordinary code does and the filter refuses, or what takes long, done by other means."""

import os
import shutil
import socket
from typing import Any

from PIL import Image

_FASTEST = 1


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


def install_fast_png() -> None:
    """PNG files of code that names no level of compression get zlib's fastest: the same pixels in a third of the time,
    in files a seventh larger. Once per process."""
    write = Image.SAVE["PNG"]

    def write_fast(image: Any, *args: Any, **options: Any) -> None:
        image.encoderinfo.setdefault("compress_level", _FASTEST)
        write(image, *args, **options)

    Image.register_save("PNG", write_fast)
