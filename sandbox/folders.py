"""The folders of the lite tier on the host, in memory, each locked by its pool. The launcher removes that of a host
that has ended; where it was killed as well, the same user's next pool does, which finds no lock."""

import fcntl
import os
import stat
import tempfile
import time
from collections import deque
from contextlib import suppress
from itertools import count

_IN_MEMORY = "/dev/shm"
_PREFIX = "sandbox-"
_LOCK = ".lock"
_ATTEMPTS = 100
_PAUSE_SECONDS = 0.05


def make_scratch() -> tuple[str, int]:
    """A folder in memory that the sessions' own users may enter but not list, and the lock on it, to be kept open."""
    parent = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else tempfile.gettempdir()
    _remove_abandoned(parent)
    unlocked = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent)
    lock = os.open(f"{unlocked}/{_LOCK}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chmod(unlocked, 0o711)
    folder = f"{parent}/{os.path.basename(unlocked)[1:]}"
    os.rename(unlocked, folder)  # only now it can pass for an abandoned one
    return folder, lock


def _remove_abandoned(parent: str) -> None:
    """Remove this user's folders whose pool has ended."""
    for name in os.listdir(parent):
        folder = f"{parent}/{name}"
        with suppress(OSError):  # another user's, another pool's, or just removed
            if name.startswith(_PREFIX) and os.lstat(folder).st_uid == os.geteuid():
                lock = lock_or_close(os.open(f"{folder}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))
                try:
                    remove_tree(folder)
                finally:
                    os.close(lock)


def lock_or_close(fd: int) -> int:
    """Lock an open file or folder until it is closed. Raises BlockingIOError where another process holds its lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def remove_when_unused(folder: str) -> None:
    """Remove a tree (`remove_tree`) whose sessions are just being killed, and may still write to it."""
    for _ in range(_ATTEMPTS):
        remove_tree(folder)
        if not os.path.lexists(folder):
            return
        time.sleep(_PAUSE_SECONDS)


def remove_tree(folder: str) -> None:
    """Delete the folder and what is below it; links are not followed, and what cannot be deleted stays. Code can nest
    folders deeper than `shutil.rmtree` can recurse or any path is long: an inner one is first moved up."""
    numbers, waiting = count(), deque([folder])
    while waiting:
        current = waiting.popleft()
        with suppress(OSError):
            _open_up(current)
            for name in os.listdir(current):
                path = f"{current}/{name}"
                if not stat.S_ISDIR(os.lstat(path).st_mode):
                    os.unlink(path)
                elif current == folder:
                    waiting.append(path)
                else:
                    _open_up(path)  # it is written to: its parent changes
                    names = (f"{folder}/.removed-{number}" for number in numbers)
                    target = next(name for name in names if not os.path.lexists(name))
                    os.rename(path, target)
                    waiting.append(target)
        if current != folder:
            with suppress(OSError):
                os.rmdir(current)
    with suppress(OSError):
        os.rmdir(folder)


def _open_up(folder: str) -> None:
    """Code can make folders that even their owner may not list (mode 0300). A link in its place is not followed."""
    fd = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)
