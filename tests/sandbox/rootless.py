"""Runs Python as root of a container whose root has little power, for root: `python -m tests.sandbox.rootless -c …`.

As Podman and Kubernetes start it: uid 0 of a user namespace with 65,536 uids, without CAP_SYS_ADMIN; /proc/sys is
read-only.
"""

import ctypes
import os
import sys
from pathlib import Path

from darkroom.sandbox._kernel import syscalls
from tests.sandbox.ordinary_user import make_enterable, needed_folders

_FIRST_UID, _N_UIDS = 300_000, 65_536
_PR_CAPBSET_DROP, _CAP_SYS_ADMIN = 24, 21


def main(arguments: list[str]) -> None:
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    make_enterable(needed_folders())
    syscalls.mount("/proc/sys", "/proc/sys", flags=syscalls.MS_BIND)
    syscalls.make_read_only("/proc/sys")
    (is_inside, inside), (is_mapped, mapped) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        os.write(inside, b"x")
        os.read(is_mapped, 1)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_ADMIN, 0, 0, 0)
        os.execv(sys.executable, [sys.executable, *arguments])
    os.read(is_inside, 1)
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(f"0 {_FIRST_UID} {_N_UIDS}")
    os.write(mapped, b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
