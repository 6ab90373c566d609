"""Which system calls a session may make, by name, and which for some arguments only.

A call in no list gets ENOSYS, on which libc falls back to an older call that is in one. That is the right answer for
what newer kernels add (futex_waitv, mseal, map_shadow_stack, cachestat, statmount, ...) and what nothing here needs:
mincore and membarrier show or disturb what other processes of the machine do. The constants are the same on every
machine in `tables`.
"""

import errno

from sandbox._kernel.bpf import ALLOW, Program, fail, null_pointer, one_of, with_bits, without_bits

_ALLOWED_NAMES = """
read write close stat fstat lstat poll lseek mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn pread64
pwrite64 readv writev preadv pwritev access pipe pipe2 select pselect6 sched_yield mremap msync dup dup2 dup3 nanosleep
getitimer alarm setitimer getpid sendfile shutdown getsockname getpeername exit uname fsync fdatasync truncate ftruncate
getcwd chdir fchdir rename mkdir rmdir creat unlink readlink umask gettimeofday getrlimit getrusage sysinfo times getuid
getgid geteuid getegid getppid getpgrp getgroups getresuid getresgid getpgid getsid sigaltstack statfs fstatfs gettid
time sched_getaffinity epoll_create epoll_create1 epoll_wait epoll_pwait epoll_ctl getdents64 clock_gettime clock_getres
clock_nanosleep exit_group mkdirat newfstatat unlinkat renameat renameat2 readlinkat faccessat faccessat2 ppoll
set_robust_list utimensat utime eventfd eventfd2 fallocate getcpu getrandom copy_file_range statx rseq chmod fchmod
fchmodat fchmodat2 symlink symlinkat close_range restart_syscall
"""
_REFUSED_NAMES = """
socket connect sendmsg recvmsg accept4 setsockopt fork vfork execve execveat kill tkill rt_sigqueueinfo
rt_tgsigqueueinfo ptrace chown fchown lchown fchownat setuid setgid setresuid setresgid setpgid setsid mknod mknodat
personality pivot_root chroot mount umount2 keyctl add_key request_key inotify_init inotify_init1 unshare
perf_event_open fanotify_init name_to_handle_at open_by_handle_at setns process_vm_readv process_vm_writev kcmp
memfd_create bpf userfaultfd pidfd_send_signal io_uring_setup open_tree move_mount fsopen pidfd_open pidfd_getfd
mount_setattr link linkat flock
"""

ALLOWED = frozenset(_ALLOWED_NAMES.split())
"""`restart_syscall` is the kernel's own: it resumes a sleep that a stop of the session has interrupted."""
REFUSED = frozenset(_REFUSED_NAMES.split())
"""Calls that answer EPERM, so that the model's code sees the refusal it would see as an ordinary user."""
METADATA = frozenset({"chmod", "fchmod", "fchmodat", "fchmodat2", "utimensat", "utime", "truncate"})
"""Allowed calls that Landlock does not cover (truncate only since Linux 6.2): refused without a mount namespace."""


_CLONE_THREAD, _CLONE_NEW_NAMESPACE = 0x00010000, 0x7E020000
_AF_UNIX, _MSG_OOB = 1, 1
_MAP_HUGETLB = 0x40000
_TERMINAL_SIZE_AND_FLAGS = (0x5401, 0x541B, 0x5421, 0x5451)  # TCGETS, FIONREAD, FIONBIO, FIOCLEX
_DUPLICATE_AND_FLAGS = (0, 1, 2, 3, 4, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: no locks
_NAMES = (15, 16, 0x53564D41)  # PR_SET_NAME, PR_GET_NAME, PR_SET_VMA
_SOCKET_STATE = (3, 4, 7, 8, 38, 39)  # SO_TYPE, SO_ERROR, SO_SNDBUF, SO_RCVBUF, SO_PROTOCOL, SO_DOMAIN
# WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET, WAKE_BITSET, each with or without PRIVATE and CLOCK_REALTIME
_FUTEX, _FUTEX_OPERATION = (0, 1, 3, 4, 5, 9, 10), 0xFFFFFE7F
# NORMAL to DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE, DONTDUMP, DODUMP, WIPEONFORK, KEEPONFORK, GUARD_INSTALL, GUARD_REMOVE
_ADVICE = (0, 1, 2, 3, 4, 8, 14, 15, 16, 17, 18, 19, 102, 103)
# O_RDONLY, O_WRONLY, O_RDWR, and the last two with O_TRUNC
_OPEN, _ACCESS_MODE_AND_TRUNCATE = (0, 1, 2, 0x201, 0x202), 0x203


def conditional_calls(process_id: int) -> dict[str, Program]:
    """By name, what decides about the call; `process_id` is the only process that it may signal."""
    return {
        # a thread, not a process; no namespace, whatever capabilities a mistake might leave
        "clone": _allowed_if(
            without_bits(0, _CLONE_NEW_NAMESPACE, errno.EPERM), with_bits(0, _CLONE_THREAD, errno.EPERM)
        ),
        "clone3": [fail(errno.ENOSYS)],  # its flags are behind a pointer: libc falls back to clone
        # abort() and pthread_kill; of an ordinary user every process of the user would be in reach
        "tgkill": _allowed_if(one_of(0, (process_id,), errno.EPERM)),
        # Landlock before Linux 6.2 lets a file be truncated that is opened for reading, or for neither (mode 3)
        "open": _allowed_if(one_of(1, _OPEN, errno.EPERM, mask=_ACCESS_MODE_AND_TRUNCATE)),
        "openat": _allowed_if(one_of(2, _OPEN, errno.EPERM, mask=_ACCESS_MODE_AND_TRUNCATE)),
        # the machine's reserved huge pages are no limit's business
        "mmap": _allowed_if(without_bits(3, _MAP_HUGETLB, errno.ENOMEM)),
        # no dedup (KSM), paging out or poisoning: they show or disturb other processes
        "madvise": _allowed_if(one_of(2, _ADVICE, errno.EINVAL)),
        # no priority inheritance: nothing here uses it, and most holes of this call were there
        "futex": _allowed_if(one_of(1, _FUTEX, errno.ENOSYS, mask=_FUTEX_OPERATION)),
        "socketpair": _allowed_if(one_of(0, (_AF_UNIX,), errno.EPERM)),
        # a datagram socket of a pair reaches any socket of the host by name (/dev/log); MSG_OOB: CVE-2025-38236
        "sendto": _allowed_if(without_bits(3, _MSG_OOB, errno.EOPNOTSUPP), null_pointer(4, errno.EPERM)),
        "recvfrom": _allowed_if(without_bits(3, _MSG_OOB, errno.EOPNOTSUPP)),
        # SO_PEERPIDFD would be a handle on the host's process
        "getsockopt": _allowed_if(one_of(2, _SOCKET_STATE, errno.ENOPROTOOPT)),
        "ioctl": _allowed_if(one_of(1, _TERMINAL_SIZE_AND_FLAGS, errno.ENOTTY)),
        "fcntl": _allowed_if(one_of(1, _DUPLICATE_AND_FLAGS, errno.EPERM)),
        "prctl": _allowed_if(one_of(0, _NAMES, errno.EPERM)),
        "prlimit64": _allowed_if(null_pointer(2, errno.EPERM)),  # look, but set nothing
    }


def _allowed_if(*checks: Program) -> Program:
    return [*(step for check in checks for step in check), ALLOW]
