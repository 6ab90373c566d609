"""Runs a module as an ordinary user, for root: `python -m tests.sandbox.ordinary_user pytest tests/sandbox`.

Root's interpreter may lie in a folder that only root may enter. In a mount namespace of its own, such a folder is
covered by an empty one into which just the needed parts are bound; no file and no permission of the machine changes.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from darkroom.sandbox._kernel import syscalls

UID = 1001
ROOT = Path(__file__).parents[2]
_ENTER = 0o001


def main(module_and_arguments: Sequence[str]) -> NoReturn:
    if os.geteuid() != 0:
        sys.exit("only root can become another user: run the module itself")
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    make_enterable(needed_folders())
    with tempfile.TemporaryDirectory(prefix="ordinary-user-") as home:
        os.chown(home, UID, UID)
        pid = os.fork()
        if pid == 0:
            _become_user(home, module_and_arguments)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.exit(code)


def _become_user(home: str, module_and_arguments: Sequence[str]) -> NoReturn:
    os.chdir(ROOT)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    os.execve(sys.executable, [sys.executable, "-m", *module_and_arguments], _environment(home))


def needed_folders() -> set[str]:
    """Where the interpreter, its libraries and this repository are."""
    folders = {str(ROOT), sys.prefix, sys.base_prefix, *filter(os.path.isdir, sys.path)}
    return {os.path.abspath(folder) for folder in folders} | {os.path.realpath(folder) for folder in folders}


def make_enterable(folders: Iterable[str]) -> None:
    """Cover each folder that others may not enter, and show there what is needed of it."""
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in sorted(folders)}
    barriers = {path: barrier for path in sources if (barrier := _barrier(path))}
    for barrier in set(barriers.values()):
        syscalls.mount_tmpfs(barrier, "size=1m,mode=755", executable=True)
    for path in barriers:
        if not os.path.exists(path):  # not yet there through a folder above it
            os.makedirs(path, mode=0o755)
            syscalls.mount(f"/proc/self/fd/{sources[path]}", path, flags=syscalls.MS_BIND | syscalls.MS_REC)
    for fd in sources.values():
        os.close(fd)


def _barrier(path: str) -> str | None:
    """The outermost folder on the way that only its owner may enter."""
    ancestors = [str(parent) for parent in reversed(Path(path).parents)]
    return next((folder for folder in ancestors if not os.stat(folder).st_mode & _ENTER), None)


def _environment(home: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("LANG", "LC_", "PATH", "DARKROOM_"))}
    own = {"HOME": home, "USER": "ordinary", "LOGNAME": "ordinary", "PYTHONPATH": str(ROOT)}
    return {**kept, **own, "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    main(sys.argv[1:])
