"""Decodes a prompt's images once, in a child that is locked down like a session: an image file is hostile input.

The child writes raw pixels into memory files that the group made, and says what it wrote; the group then seals the
files, so that no session can change what another sees, and puts the originals where the code will find them.
"""

import errno
import json
import math
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from darkroom.sandbox._guest import lockdown
from darkroom.sandbox._guest.config import IMAGE_FOLDER, DecodedImage
from darkroom.sandbox._guest.decoder import MAX_REASON, MAX_SIDE, SHARED_MODES, Target, decode_in_child
from darkroom.sandbox._guest.proc import Proc
from darkroom.sandbox._kernel import syscalls
from darkroom.sandbox.clock import Deadline, ProcessClock

_SUFFIXES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "MPO": "jpg"}
_MAX_REPORT = 1 << 16
_SEALABLE = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write
_CRASHES = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
}
"""Signals that a decoder earns by what it does. SIGKILL comes from a kernel without memory."""


class RefusedInput(Exception):
    """Sent to the host instead of `ready`: `unreadable`, `too_large` or `exhausted`."""

    def __init__(self, **answer: Any) -> None:
        super().__init__(answer)
        self.answer = answer


def exhausted(reason: str, number: int | None = None) -> RefusedInput:
    """What this machine lacked, with the error number where the kernel gave one."""
    return RefusedInput(exhausted=reason, errno=number)


class _Report(NamedTuple):
    """What the child says of one image."""

    format: str
    mode: str
    width: int
    height: int
    bgr_shape: tuple[int, ...]


@contextmanager
def inputs_folder(fds: list[int], *, namespaces: bool) -> Iterator[None]:
    """Within, what the descriptors hold can be stored where the code will find it; afterwards nothing can change it."""
    if namespaces:
        n_bytes = sum(os.fstat(fd).st_size for fd in fds)
        syscalls.mount_tmpfs(IMAGE_FOLDER, f"size={n_bytes + (1 << 20)},mode=755,nr_inodes={len(fds) + 16}")
    yield
    if namespaces:
        syscalls.make_read_only(IMAGE_FOLDER, executable=False)


def decode_images(cage: lockdown.Cage, proc: Proc, fds: list[int], image_folder: str) -> list[DecodedImage]:
    """Decode, seal and store the images. Raises RefusedInput, and OSError."""
    targets = [Target(fd, *(os.memfd_create("pixels", _SEALABLE) for _ in range(2))) for fd in fds]
    reports = _ask_child(cage, proc, targets) if targets else []
    return [_store(i, target, reports[i], image_folder) for i, target in enumerate(targets)]


def store_videos(fds: list[int], suffixes: list[str], folder: str) -> list[str]:
    """Store the files as they are: the session that reads one decodes it. Answers with their paths."""
    paths = [f"{folder}/video_{index}{suffix}" for index, suffix in enumerate(suffixes)]
    for fd, path in zip(fds, paths, strict=True):
        _copy(fd, path)
    return paths


def _ask_child(cage: lockdown.Cage, proc: Proc, targets: list[Target]) -> list[_Report]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        decode_in_child(cage, targets, writing)
    os.close(writing)
    limits = cage.limits.for_decoding(len(targets))
    clock = ProcessClock(pid, proc.open_run_queue(pid))
    try:
        report = _read_all(reading, Deadline(clock, limits))
    except TimeoutError:
        raise exhausted(f"decoding took more than {limits.seconds:.0f} s") from None
    finally:
        os.kill(pid, signal.SIGKILL)  # too late to change how it ended, where it has
        ended = -os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        clock.close()
        os.close(reading)
    return _checked_reports(report.splitlines(), len(targets), ended)


def _read_all(fd: int, rest: Callable[[], float]) -> bytes:
    """Raises TimeoutError."""
    report = b""
    while len(report) <= _MAX_REPORT:
        # time is up only for what is not there yet, however late a busy machine lets this process look
        if select.select([fd], [], [], 0)[0] or select.select([fd], [], [], rest())[0]:
            part = os.read(fd, _MAX_REPORT)
            if not part:
                break
            report += part
    return report


def _checked_reports(lines: list[bytes], n_images: int, ended: int) -> list[_Report]:
    """The child may be under the control of an image: only shapes and a short reason are taken from it.

    `ended`: the signal that ended the child, 0 or less where there was none.
    """
    reports: list[_Report] = []
    for index in range(n_images):
        if index == len(lines) and ended not in _CRASHES:
            raise exhausted("the decoder was killed", errno.ENOMEM)
        try:
            reports.append(_checked_report(json.loads(lines[index]), index))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise RefusedInput(unreadable=index, reason="the decoder ended without an answer") from None
    return reports


def _checked_report(report: Any, index: int) -> _Report:
    if "exhausted" in report:
        number = report["errno"]
        raise exhausted(_short(report["exhausted"]), number if type(number) is int else None)
    if "too_large" in report:
        raise RefusedInput(too_large=_short(report["too_large"]))
    if "reason" in report:
        raise RefusedInput(unreadable=index, reason=_short(report["reason"]))
    width, height, shape = report["width"], report["height"], tuple(report["bgr_shape"])
    if not all(type(side) is int and 0 < side <= MAX_SIDE for side in (width, height, *shape)):
        raise ValueError("a side is out of range")
    return _Report(str(report["format"]), str(report["mode"]), width, height, shape)


def _short(reason: object) -> str:
    return str(reason)[:MAX_REASON]


def _store(index: int, target: Target, report: _Report, image_folder: str) -> DecodedImage:
    name, mode, width, height, shape = report
    path = f"{image_folder}/image_{index}.{_SUFFIXES.get(name, 'img')}"
    _copy(target.source_fd, path)
    pixels_fd = _sealed(target.pixels_fd, width * height * SHARED_MODES.get(mode, 0))
    bgr_fd = _sealed(target.bgr_fd, math.prod(shape) if shape else 0)
    return DecodedImage(path, width, height, mode, pixels_fd, bgr_fd, shape)


def _sealed(fd: int, n_bytes: int) -> int:
    """The descriptor, or -1 if the file does not hold exactly what was announced."""
    if n_bytes == 0 or os.fstat(fd).st_size != n_bytes:
        os.close(fd)
        return -1
    syscalls.seal(fd, _ALL_SEALS)
    return fd


def _copy(source_fd: int, path: str) -> None:
    size, done = os.fstat(source_fd).st_size, 0
    with open(path, "wb") as file:
        while done < size:
            sent = os.sendfile(file.fileno(), source_fd, done, size - done)
            if sent == 0:
                break
            done += sent
    os.chmod(path, 0o444)
