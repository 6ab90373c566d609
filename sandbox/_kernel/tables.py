"""System call numbers, per machine; what is decided about each call stands in `decisions`.

Only machines that stand in `TABLES` can run the sandbox: on another the filter cannot be built, and the doctor says so.
The numbers are those of the kernel's <asm/unistd.h>: a test compares them with the headers of the machine it runs on.
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
    "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25, "msync": 26, "madvise": 28, "dup": 32,
    "dup2": 33, "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "sendfile": 40,
    "socket": 41, "connect": 42, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "shutdown": 48,
    "getsockname": 51, "getpeername": 52, "socketpair": 53, "setsockopt": 54, "getsockopt": 55, "clone": 56,
    "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "kill": 62, "uname": 63, "fcntl": 72, "flock": 73,
    "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77, "getcwd": 79, "chdir": 80, "fchdir": 81,
    "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
    "readlink": 89, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "umask": 95,
    "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "ptrace": 101,
    "getuid": 102, "getgid": 104, "setuid": 105, "setgid": 106, "geteuid": 107, "getegid": 108, "setpgid": 109,
    "getppid": 110, "getpgrp": 111, "setsid": 112, "getgroups": 115, "setresuid": 117, "getresuid": 118,
    "setresgid": 119, "getresgid": 120, "getpgid": 121, "getsid": 124, "capset": 126, "rt_sigqueueinfo": 129,
    "sigaltstack": 131, "utime": 132, "mknod": 133, "personality": 135, "statfs": 137, "fstatfs": 138,
    "pivot_root": 155, "prctl": 157, "chroot": 161, "mount": 165, "umount2": 166, "gettid": 186, "tkill": 200,
    "time": 201, "futex": 202, "sched_getaffinity": 204, "epoll_create": 213, "getdents64": 217,
    "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230,
    "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "add_key": 248, "request_key": 249,
    "keyctl": 250, "inotify_init": 253, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260,
    "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "readlinkat": 267,
    "fchmodat": 268, "faccessat": 269, "pselect6": 270, "ppoll": 271, "unshare": 272, "set_robust_list": 273,
    "utimensat": 280, "epoll_pwait": 281, "eventfd": 284, "fallocate": 285, "accept4": 288, "eventfd2": 290,
    "epoll_create1": 291, "dup3": 292, "pipe2": 293, "inotify_init1": 294, "preadv": 295, "pwritev": 296,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "getcpu": 309, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "renameat2": 316, "seccomp": 317, "getrandom": 318,
    "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323, "copy_file_range": 326, "statx": 332,
    "rseq": 334, "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "pidfd_getfd": 438,
    "faccessat2": 439, "mount_setattr": 442, "landlock_create_ruleset": 444, "landlock_add_rule": 445,
    "landlock_restrict_self": 446, "fchmodat2": 452,
}
# asm-generic/unistd.h: the calls that only older machines have (open, stat, fork, rename, ...) do not exist
_AARCH64_NUMBERS = {
    "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23,
    "dup3": 24, "fcntl": 25, "inotify_init1": 26, "ioctl": 29, "flock": 32, "mknodat": 33, "mkdirat": 34,
    "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "umount2": 39, "mount": 40, "pivot_root": 41,
    "statfs": 43, "fstatfs": 44, "truncate": 45, "ftruncate": 46, "fallocate": 47, "faccessat": 48, "chdir": 49,
    "fchdir": 50, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "openat": 56,
    "close": 57, "pipe2": 59, "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66,
    "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70, "sendfile": 71, "pselect6": 72, "ppoll": 73,
    "readlinkat": 78, "newfstatat": 79, "fstat": 80, "fsync": 82, "fdatasync": 83, "utimensat": 88,
    "capset": 91, "personality": 92, "exit": 93, "exit_group": 94, "unshare": 97, "futex": 98,
    "set_robust_list": 99, "nanosleep": 101, "getitimer": 102, "setitimer": 103, "clock_gettime": 113,
    "clock_getres": 114, "clock_nanosleep": 115, "ptrace": 117, "sched_getaffinity": 123, "sched_yield": 124,
    "restart_syscall": 128, "kill": 129, "tkill": 130, "tgkill": 131, "sigaltstack": 132, "rt_sigaction": 134,
    "rt_sigprocmask": 135, "rt_sigqueueinfo": 138, "rt_sigreturn": 139, "setgid": 144, "setuid": 146,
    "setresuid": 147, "getresuid": 148, "setresgid": 149, "getresgid": 150, "times": 153, "setpgid": 154,
    "getpgid": 155, "getsid": 156, "setsid": 157, "getgroups": 158, "uname": 160, "getrlimit": 163,
    "getrusage": 165, "umask": 166, "prctl": 167, "getcpu": 168, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
    "socket": 198, "socketpair": 199, "connect": 203, "getsockname": 204, "getpeername": 205, "sendto": 206,
    "recvfrom": 207, "setsockopt": 208, "getsockopt": 209, "shutdown": 210, "sendmsg": 211, "recvmsg": 212,
    "brk": 214, "munmap": 215, "mremap": 216, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "execve": 221, "mmap": 222, "mprotect": 226, "msync": 227, "madvise": 233, "rt_tgsigqueueinfo": 240,
    "perf_event_open": 241, "accept4": 242, "prlimit64": 261, "fanotify_init": 262, "name_to_handle_at": 264,
    "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "renameat2": 276, "seccomp": 277, "getrandom": 278, "memfd_create": 279, "bpf": 280, "execveat": 281,
    "userfaultfd": 282, "copy_file_range": 285, "statx": 291, "rseq": 293, "pidfd_send_signal": 424,
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "pidfd_open": 434, "clone3": 435,
    "close_range": 436, "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439, "mount_setattr": 442,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "fchmodat2": 452,
}
# fmt: on

TABLES: dict[str, SyscallTable] = {
    "x86_64": SyscallTable(
        audit_arch=0xC000003E,
        foreign_bit=0x40000000,
        xattr=range(188, 200),
        numbers=_X86_64_NUMBERS,
    ),
    "aarch64": SyscallTable(
        audit_arch=0xC00000B7,
        foreign_bit=0,
        xattr=range(5, 17),
        numbers=_AARCH64_NUMBERS,
    ),
}
