"""Private mappings of a file that outlive its descriptor (`mmap.mmap` keeps one of its own), and huge pages."""

import ctypes
import mmap
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MADV_COLLAPSE, _HUGE_PAGE = 25, 2 << 20
_FAILED = ctypes.c_void_p(-1).value


def map_private(fd: int, n_bytes: int) -> int:
    """Address of the file's bytes, copied page by page when written to. Raises OSError."""
    address = _libc.mmap(None, n_bytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, fd, 0)
    if address is None or address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"mmap: {os.strerror(number)}")
    return int(address)


def restore(address: int, n_bytes: int) -> None:
    """Give up what was written to such a mapping: it shows the file again. Raises OSError."""
    if _libc.madvise(address, n_bytes, mmap.MADV_DONTNEED) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"madvise: {os.strerror(number)}")


def collapse(first: int, end: int) -> None:
    """Put memory into huge pages as far as the kernel can (Linux 6.1 and newer); it works as well without."""
    first, end = -(-first // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
    if first < end:
        _libc.madvise(first, end - first, _MADV_COLLAPSE)


def bytes_at(address: int, n_bytes: int) -> "memoryview[int]":
    """The memory itself; whoever holds it must not outlive the mapping."""
    return memoryview((ctypes.c_ubyte * n_bytes).from_address(address)).cast("B")
