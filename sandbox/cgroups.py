"""Delegated cgroup v2, used where there is one: the kernel then limits memory and tasks of a session as a whole.

No tier needs it. It counts what rlimits cannot: files in memory, pipes and sockets, and in the lite tier of an ordinary
user the threads of this session alone. The host's own process is never moved.

    delegated folder        cgroup.subtree_control: memory pids; no processes
    |-- host                this process (or elsewhere)
    `-- darkroom-<token>    one pool: TreeCgroup, locked as long as its host lives
        `-- session-<n>     one session: SessionCgroup
"""

import os
import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from darkroom.sandbox.delegation import SUBTREE_CONTROL, CgroupUnusable, find_folder, usable
from darkroom.sandbox.errors import CGROUP_VARIABLE, SandboxClosed, SandboxError, SandboxUnavailable, remedy
from darkroom.sandbox.folders import lock_or_close

_PREFIX = "darkroom-"
_ATTEMPTS = 8
_SESSION_END_SECONDS, _TREE_END_SECONDS = 1.0, 5.0
_RETRY_SECONDS = 0.002


def open_delegated(environment: Mapping[str, str]) -> "TreeCgroup | None":
    """A cgroup in what was delegated and works, else None. Raises SandboxUnavailable where a bad one is named."""
    try:
        return _proved_tree(environment)
    except CgroupUnusable as error:
        if environment.get(CGROUP_VARIABLE):
            raise SandboxUnavailable(f"{CGROUP_VARIABLE}: {error}. To do: {remedy(CGROUP_VARIABLE)}") from error
        return None


def reason_for_none(environment: Mapping[str, str]) -> str | None:
    """Why `open_delegated` has none, for the doctor; None where it has one."""
    try:
        _proved_tree(environment).close()
    except CgroupUnusable as error:
        return str(error)
    return None


class TreeCgroup:
    """The cgroup of one pool. It holds no process itself, so that its children can have limits."""

    def __init__(self, parent: Path) -> None:
        _remove_abandoned(parent)
        self.folder, lock = _new_locked_folder(parent)
        self._lock = ExitStack()
        self._lock.callback(os.close, lock)
        self._counter = count(1)
        try:
            _write(self.folder / "cgroup.subtree_control", SUBTREE_CONTROL)
        except OSError:
            self.close()
            raise

    def add(self, pid: int, *, memory_bytes: int, max_tasks: int) -> "SessionCgroup":
        """Limit this process and its threads from now on. Raises SandboxClosed where it or the tree has ended."""
        session = SessionCgroup(self.folder / f"session-{next(self._counter)}")
        try:
            _make_folder(session.folder)
            session.limit(memory_bytes=memory_bytes, max_tasks=max_tasks)
            _write(session.folder / "cgroup.procs", str(pid))
        except OSError as error:
            session.close()
            if isinstance(error, (ProcessLookupError, FileNotFoundError)):
                raise SandboxClosed("the session or the pool ended before the session was limited") from error
            raise SandboxError(f"process {pid} cannot be limited by {session.folder}: {error}") from error
        return session

    def close(self) -> None:
        """Kill every process of the tree and remove it. Raises SandboxError where a process outlives its kill."""
        with self._lock:
            removed = _end_tree(self.folder)
        if not removed:
            seconds = f"{_TREE_END_SECONDS:g} s"
            raise SandboxError(f"{self.folder} cannot be removed {seconds} after its processes were killed")


@dataclass(frozen=True)
class SessionCgroup:
    """The cgroup of one session."""

    folder: Path

    def limit(self, *, memory_bytes: int, max_tasks: int) -> None:
        _write(self.folder / "memory.max", str(memory_bytes))
        with suppress(FileNotFoundError):  # a kernel that has no swap to count
            _write(self.folder / "memory.swap.max", "0")
        _write(self.folder / "pids.max", str(max_tasks))

    @property
    def n_memory_kills(self) -> int:
        """Processes of the session that the kernel has killed because of `memory_bytes`."""
        events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
        return int(events["oom_kill"])

    def close(self) -> None:
        """Remove it, after the session has ended; what is in use for longer is left to the tree's `close`."""
        _remove_folder(self.folder, seconds=_SESSION_END_SECONDS)


def _proved_tree(environment: Mapping[str, str]) -> TreeCgroup:
    """A tree in which sessions can be limited. Raises CgroupUnusable."""
    folder = find_folder(environment)
    with usable(f"no limited cgroup can be made in {folder}"):
        tree = TreeCgroup(folder)
    try:
        with usable(f"no session's cgroup can be made below {folder}"):
            trial = tree.folder / "trial"
            _make_folder(trial)
            missing = [name for name in ("memory.max", "pids.max", "cgroup.kill") if not (trial / name).exists()]
            _rmdir(trial)
        if missing:
            raise CgroupUnusable(f"a cgroup below {folder} has no {', '.join(missing)} (Linux 5.14 has all)")
    except CgroupUnusable:
        tree.close()
        raise
    return tree


def _new_locked_folder(parent: Path) -> tuple[Path, int]:
    """The lock ends with this process: a folder that is not locked was abandoned."""
    for _ in range(_ATTEMPTS):
        folder = parent / f"{_PREFIX}{secrets.token_hex(8)}"
        _make_folder(folder)
        with suppress(FileNotFoundError, BlockingIOError):  # another host took it for abandoned meanwhile
            fd = _lock(folder)
            if folder.exists():
                return folder, fd
            os.close(fd)
    raise FileExistsError(f"every new folder in {parent} was taken away")


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError, BlockingIOError):  # it is just being removed, or its host lives
            fd = _lock(folder)
            _end_tree(folder)
            os.close(fd)


def _lock(folder: Path) -> int:
    return lock_or_close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _end_tree(folder: Path) -> bool:
    with suppress(FileNotFoundError):  # it is gone, or the kernel is older than what `_proved_tree` accepts
        _write(folder / "cgroup.kill", "1")
    deadline, removed = time.monotonic() + _TREE_END_SECONDS, False
    for each in (*folder.glob("*/"), folder):
        removed = _remove_folder(each, seconds=deadline - time.monotonic())
    return removed


def _remove_folder(folder: Path, *, seconds: float) -> bool:
    """Remove a folder; False where a process is still in it after that time."""
    deadline = time.monotonic() + seconds
    while folder.exists():
        try:
            _rmdir(folder)
        except OSError:
            if time.monotonic() >= deadline:
                return not folder.exists()
            time.sleep(_RETRY_SECONDS)
    return True


def _make_folder(folder: Path) -> None:
    os.mkdir(folder, 0o755)


def _rmdir(folder: Path) -> None:
    os.rmdir(folder)


def _write(path: Path, text: str) -> None:
    """Write at once and without creating anything: a control file that is not there is an error."""
    with open(path, "wb", buffering=0, opener=lambda name, _: os.open(name, os.O_WRONLY | os.O_CLOEXEC)) as file:
        file.write(text.encode())
