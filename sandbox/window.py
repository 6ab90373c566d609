"""Memory that the host shares with one session, which puts the pixels of its replies there.

Through the socket they would be copied four times and wake both sides again and again. Nothing is believed of what it
holds: how much is read, the reply said and the host checked, and raw pixels mean nothing else.
"""

import fcntl
import mmap
import os

from PIL import Image

_KEPT_BYTES = 16 << 20
"""Pages that stay for the next reply, which is cheaper for them; of a larger one they are given back."""


class Window:
    """Cannot be resized by either side."""

    def __init__(self, n_bytes: int) -> None:
        self.fd = os.memfd_create("pixels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        """For the session; see `handed_over`."""
        os.ftruncate(self.fd, n_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.fd, n_bytes)

    def handed_over(self) -> None:
        """The session has its descriptor; this one is closed."""
        os.close(self.fd)
        self.fd = -1

    def read(self, sizes: list[tuple[int, int]]) -> list[Image.Image]:
        """RGB images of these widths and heights, one after the other from the start."""
        images, start = list[Image.Image](), 0
        with memoryview(self._memory) as memory:
            for width, height in sizes:
                end = start + width * height * 3
                with memory[start:end] as pixels:
                    images.append(Image.frombytes("RGB", (width, height), pixels))
                start = end
        if start > _KEPT_BYTES:
            self._memory.madvise(mmap.MADV_REMOVE)
        return images

    def close(self) -> None:
        self._memory.close()
        if self.fd >= 0:
            self.handed_over()
