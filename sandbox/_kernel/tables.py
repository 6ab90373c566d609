"""System call numbers and the decision for each of them, per machine.

Only machines that stand in `TABLES` can run the sandbox: on another the filter cannot be built, and the doctor says so.
A number that is in no list gets ENOSYS, on which libc falls back to an older call.
"""

from typing import NamedTuple


class SyscallTable(NamedTuple):
    """What a seccomp filter has to know about one machine."""

    audit_arch: int
    """AUDIT_ARCH_* of the native ABI; a call that arrives through another ABI kills the process."""
    foreign_bit: int
    """Numbers at or above this belong to a second ABI behind the same AUDIT_ARCH (x32); 0 where there is none."""
    xattr: range
    """The block of extended-attribute calls: EOPNOTSUPP, which shutil.copytree copes with and ENOSYS it does not."""
    numbers: dict[str, int]


# fmt: off
_X86_64_NUMBERS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
    "rt_sigreturn": 15, "ioctl": 16, "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20, "access": 21,
    "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28, "dup": 32,
    "dup2": 33, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "sendfile": 40,
    "socket": 41, "connect": 42, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "shutdown": 48,
    "getsockname": 51, "getpeername": 52, "socketpair": 53, "setsockopt": 54, "getsockopt": 55, "clone": 56,
    "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "kill": 62, "uname": 63, "fcntl": 72, "flock": 73,
    "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77, "getcwd": 79, "chdir": 80, "fchdir": 81,
    "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "umask": 95, "gettimeofday": 96,
    "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "ptrace": 101, "getuid": 102, "getgid": 104,
    "setuid": 105, "setgid": 106, "geteuid": 107, "getegid": 108, "setpgid": 109, "getppid": 110, "getpgrp": 111,
    "setsid": 112, "getgroups": 115, "setresuid": 117, "getresuid": 118, "setresgid": 119, "getresgid": 120,
    "getpgid": 121, "getsid": 124, "capset": 126, "sigaltstack": 131, "utime": 132, "mknod": 133,
    "personality": 135, "statfs": 137, "fstatfs": 138, "pivot_root": 155, "prctl": 157, "chroot": 161, "mount": 165,
    "umount2": 166, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "epoll_create": 213,
    "getdents64": 217, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "add_key": 248, "request_key": 249, "keyctl": 250,
    "inotify_init": 253, "openat": 257, "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "renameat": 264,
    "linkat": 265, "symlinkat": 266, "readlinkat": 267, "fchmodat": 268, "faccessat": 269, "pselect6": 270,
    "ppoll": 271, "unshare": 272, "set_robust_list": 273, "utimensat": 280, "epoll_pwait": 281, "eventfd": 284,
    "fallocate": 285, "accept4": 288, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293,
    "inotify_init1": 294, "preadv": 295, "pwritev": 296, "perf_event_open": 298, "fanotify_init": 300,
    "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "getcpu": 309,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "renameat2": 316, "seccomp": 317,
    "getrandom": 318, "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323, "membarrier": 324,
    "copy_file_range": 326, "statx": 332, "rseq": 334, "pidfd_send_signal": 424, "io_uring_setup": 425,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "pidfd_open": 434, "clone3": 435, "close_range": 436,
    "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439, "mount_setattr": 442, "landlock_create_ruleset": 444,
    "landlock_add_rule": 445, "landlock_restrict_self": 446,
}
# fmt: on
_X86_64 = SyscallTable(
    audit_arch=0xC000003E,
    foreign_bit=0x40000000,
    xattr=range(188, 200),
    numbers=_X86_64_NUMBERS,
)

TABLES: dict[str, SyscallTable] = {"x86_64": _X86_64}

_ALLOWED_NAMES = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
pread64 pwrite64 readv writev preadv pwritev access pipe pipe2 select pselect6 sched_yield mremap msync mincore
madvise dup dup2 dup3 nanosleep getitimer alarm setitimer getpid sendfile sendto recvfrom shutdown getsockname
getpeername getsockopt exit uname fsync fdatasync truncate ftruncate getcwd chdir fchdir rename mkdir rmdir creat
unlink readlink umask gettimeofday getrlimit getrusage sysinfo times getuid getgid geteuid getegid getppid getpgrp
getgroups getresuid getresgid getpgid getsid sigaltstack statfs fstatfs gettid time futex sched_getaffinity
epoll_create epoll_create1 epoll_wait epoll_pwait epoll_ctl getdents64 clock_gettime clock_getres clock_nanosleep
exit_group tgkill openat mkdirat newfstatat unlinkat renameat renameat2 readlinkat faccessat faccessat2 ppoll
set_robust_list utimensat utime eventfd eventfd2 fallocate getcpu getrandom membarrier copy_file_range statx rseq
chmod fchmod fchmodat symlink symlinkat close_range
"""
_REFUSED_NAMES = """
socket connect sendmsg recvmsg accept4 setsockopt fork vfork execve execveat kill ptrace chown fchown lchown setuid
setgid setresuid setresgid setpgid setsid mknod personality pivot_root chroot mount umount2 keyctl add_key request_key
inotify_init inotify_init1 unshare perf_event_open fanotify_init name_to_handle_at open_by_handle_at setns
process_vm_readv process_vm_writev kcmp memfd_create bpf userfaultfd pidfd_send_signal io_uring_setup open_tree
move_mount fsopen pidfd_open pidfd_getfd mount_setattr link linkat flock
"""

ALLOWED = frozenset(_ALLOWED_NAMES.split())
REFUSED = frozenset(_REFUSED_NAMES.split())
"""Calls that answer EPERM, so that the model's code sees the refusal it would see as an ordinary user."""
METADATA = frozenset({"chmod", "fchmod", "fchmodat", "utimensat", "utime"})
"""Landlock does not cover these: without a mount namespace they must be refused by number."""
