"""Which system calls a session may make, by name; calls that depend on their arguments stand in `conditions`.

A call in no list gets ENOSYS, on which libc falls back to an older call that is in one. That is the right answer for
what newer kernels add (futex_waitv, mseal, map_shadow_stack, cachestat, statmount, ...) and what nothing here needs:
mincore and membarrier show or disturb what other processes of the machine do.
"""

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
