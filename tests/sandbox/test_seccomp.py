"""The filter's answer to every call of every machine, by a simulator (`tests/sandbox/bpf.py`)."""

import errno
import mmap
import re
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.sandbox._kernel import seccomp, syscalls
from darkroom.sandbox._kernel.syscalls import ALLOWED, METADATA, REFUSED, TABLES
from tests.matrices import fewer_quickly
from tests.sandbox.bpf import ALLOW, ERRNO, KILL, Call, InvalidProgram, load, verdict
from tests.sandbox.filters import (
    CLONE_THREAD,
    CONDITIONAL,
    EPERM,
    FILTERS,
    FORK_OF_LIBC,
    HIGH,
    MACHINES,
    PID,
    THREAD_OF_LIBC,
)

# fmt: off
ONLY_OLDER_MACHINES = {
    "access", "alarm", "chmod", "creat", "dup2", "epoll_create", "epoll_wait", "eventfd", "getpgrp", "lstat", "mkdir",
    "open", "poll", "readlink", "rename", "rmdir", "select", "stat", "symlink", "time", "unlink", "utime",
}
# fmt: on
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
PRIVATE, CLOCK_REALTIME = 128, 256
O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_CLOEXEC = 0, 1, 2, 0o100, 0o1000, 0o2000000


def answer(machine: str, name: str, *arguments: int, metadata_calls: bool = True) -> int:
    words = (*arguments, *(0,) * (6 - len(arguments)))
    call = Call(TABLES[machine].audit_arch, TABLES[machine].numbers[name], words)
    return verdict(FILTERS[machine, metadata_calls], call)


def answer_to_number(machine: str, number: int, *, metadata_calls: bool = True) -> int:
    return verdict(FILTERS[machine, metadata_calls], Call(TABLES[machine].audit_arch, number))


@pytest.mark.parametrize("machine", MACHINES)
def test_every_allowed_call_is_allowed(machine: str) -> None:
    names = (ALLOWED - CONDITIONAL) & TABLES[machine].numbers.keys()
    assert {name: answer(machine, name) for name in names} == dict.fromkeys(names, ALLOW)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_refused_call_answers_as_to_an_ordinary_user(machine: str) -> None:
    names = REFUSED & TABLES[machine].numbers.keys()
    assert {name: answer(machine, name) for name in names} == dict.fromkeys(names, EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_on_other_peoples_files_need_a_mount_namespace(machine: str) -> None:
    names = METADATA & TABLES[machine].numbers.keys()
    assert {answer(machine, name, metadata_calls=True) for name in names} == {ALLOW}
    assert {answer(machine, name, metadata_calls=False) for name in names} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_in_no_list_does_not_exist(machine: str) -> None:
    table = TABLES[machine]
    decided = {table.numbers[name] for name in table.numbers if name in ALLOWED | REFUSED | CONDITIONAL}
    others = set(range(1024)) - decided - set(table.xattr)
    assert {answer_to_number(machine, number) for number in others} == {ERRNO | errno.ENOSYS}


@pytest.mark.parametrize("machine", MACHINES)
def test_extended_attributes_are_not_supported(machine: str) -> None:
    numbers = TABLES[machine].xattr
    assert len(numbers) == 12
    assert {answer_to_number(machine, number) for number in numbers} == {ERRNO | errno.EOPNOTSUPP}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_through_another_abi_kills(machine: str) -> None:
    foreign = {table.audit_arch for name, table in TABLES.items() if name != machine} | {0x40000003, 0x40000028, 0}
    for arch in foreign:
        for number in (0, TABLES[machine].numbers["read"], TABLES[machine].numbers["exit_group"], 0xFFFFFFFF):
            assert verdict(FILTERS[machine, True], Call(arch, number)) == KILL


def test_the_second_abi_of_x86_64_kills() -> None:
    for number in (0x40000000, 0x40000000 + TABLES["x86_64"].numbers["getpid"], 0x7FFFFFFF, 0xFFFFFFFF):
        assert answer_to_number("x86_64", number) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_are_allowed_and_processes_are_not(machine: str) -> None:
    assert answer(machine, "clone", THREAD_OF_LIBC) == ALLOW
    assert answer(machine, "clone", FORK_OF_LIBC) == EPERM
    assert answer(machine, "clone", CLONE_THREAD * HIGH) == EPERM  # the kernel drops the high half of the flags
    assert answer(machine, "clone3") == ERRNO | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "namespace", ["CLONE_NEWNS", "CLONE_NEWCGROUP", "CLONE_NEWUTS", "CLONE_NEWIPC", "CLONE_NEWUSER", "CLONE_NEWNET"]
)
def test_no_thread_enters_a_new_namespace(machine: str, namespace: str) -> None:
    assert answer(machine, "clone", THREAD_OF_LIBC | getattr(syscalls, namespace)) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_session_signals_nobody_but_itself(machine: str) -> None:
    assert answer(machine, "tgkill", PID, PID, 9) == ALLOW
    for other in (0, 1, PID + 1, 0xFFFFFFFF):
        assert answer(machine, "tgkill", other, PID, 9) == EPERM
    assert {answer(machine, name, PID) for name in ("kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_only_local_socket_pairs_can_be_made(machine: str) -> None:
    assert answer(machine, "socketpair", socket.AF_UNIX) == ALLOW
    for family in (0, socket.AF_INET, socket.AF_INET6, 16, 38, 40):
        assert answer(machine, "socketpair", family) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("address", [1, HIGH, 0x7FFF_1234_0000, (1 << 64) - 1])
def test_nothing_is_sent_to_an_address(machine: str, address: int) -> None:
    assert {answer(machine, "sendto", 3, 0, 0, 0x4000, 0, length) for length in (0, 16)} == {ALLOW}
    assert {answer(machine, "sendto", 3, 0, 0, 0x4000, address, length) for length in (0, 16)} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_out_of_band_data_is_not_supported(machine: str) -> None:
    assert answer(machine, "recvfrom", 3, 0, 0, 0x40) == ALLOW
    for name in ("sendto", "recvfrom"):
        assert answer(machine, name, 3, 0, 0, 0x41) == ERRNO | errno.EOPNOTSUPP


@pytest.mark.parametrize("machine", MACHINES)
def test_a_socket_gives_no_handle_on_its_peer(machine: str) -> None:
    assert answer(machine, "getsockopt", 3, socket.SOL_SOCKET, socket.SO_TYPE) == ALLOW
    for option in (17, 59, 77):  # SO_PEERCRED, SO_PEERGROUPS, SO_PEERPIDFD
        assert answer(machine, "getsockopt", 3, socket.SOL_SOCKET, option) == ERRNO | errno.ENOPROTOOPT


@pytest.mark.parametrize("machine", MACHINES)
def test_devices_take_no_commands(machine: str) -> None:
    assert {answer(machine, "ioctl", 0, command) for command in (0x5401, 0x541B, 0x5421, 0x5451)} == {ALLOW}
    for command in (0x5412, 0x5413, 0x541C, 0x8901, 0x5452, 0xFFFFFFFF):  # TIOCSTI, TIOCGWINSZ, TIOCLINUX, ...
        assert answer(machine, "ioctl", 0, command) == ERRNO | errno.ENOTTY


@pytest.mark.parametrize("machine", MACHINES)
def test_files_take_no_locks_leases_or_owners(machine: str) -> None:
    assert {answer(machine, "fcntl", 0, command) for command in (0, 1, 2, 3, 4, 1030)} == {ALLOW}
    for command in (5, 6, 7, 8, 10, 15, 36, 37, 38, 1024, 1026, 1031, 1033):
        assert answer(machine, "fcntl", 0, command) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_can_only_name_itself_and_its_memory(machine: str) -> None:
    assert {answer(machine, "prctl", option) for option in (15, 16, 0x53564D41)} == {ALLOW}
    # PDEATHSIG, DUMPABLE, KEEPCAPS, SECCOMP, CAPBSET_DROP, MM, NO_NEW_PRIVS, AMBIENT, MEMORY_MERGE, PTRACER
    for option in (1, 4, 8, 22, 24, 35, 38, 47, 67, 0x59616D61):
        assert answer(machine, "prctl", option) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("pointer", [1, HIGH - 1, HIGH, 0x7FFF_1234_5678, (1 << 64) - 1])
def test_limits_can_be_read_but_not_set(machine: str, pointer: int) -> None:
    assert answer(machine, "prlimit64", 0, 9, 0, pointer) == ALLOW
    assert answer(machine, "prlimit64", 0, 9, pointer, 0) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_file_is_truncated_only_by_who_may_write_it(machine: str) -> None:
    """Landlock before Linux 6.2 does not look at O_TRUNC."""
    for flags in (O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC | O_CREAT, O_RDWR | O_TRUNC | O_CLOEXEC):
        assert answer(machine, "openat", 3, 0, flags) == ALLOW
    for flags in (O_RDONLY | O_TRUNC, 3, 3 | O_TRUNC, O_CLOEXEC | O_TRUNC):
        assert answer(machine, "openat", 3, 0, flags) == EPERM


def test_the_older_open_is_no_way_around() -> None:
    assert answer("x86_64", "open", 0, O_WRONLY | O_TRUNC) == ALLOW
    assert answer("x86_64", "open", 0, O_RDONLY | O_TRUNC) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_huge_pages_of_the_machine_are_not_taken(machine: str) -> None:
    assert answer(machine, "mmap", 0, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) == ALLOW
    assert answer(machine, "mmap", 0, 4096, 3, mmap.MAP_PRIVATE | 0x40000) == ERRNO | errno.ENOMEM


@pytest.mark.parametrize("machine", MACHINES)
def test_memory_advice_touches_no_other_process(machine: str) -> None:
    assert {answer(machine, "madvise", 0, 4096, advice) for advice in (0, 4, 8, 14, 16, 18, 102)} == {ALLOW}
    for advice in (9, 12, 20, 21, 100, 101):  # REMOVE, MERGEABLE, COLD, PAGEOUT, HWPOISON, SOFT_OFFLINE
        assert answer(machine, "madvise", 0, 4096, advice) == ERRNO | errno.EINVAL


@pytest.mark.parametrize("machine", MACHINES)
def test_futexes_do_not_inherit_priorities(machine: str) -> None:
    for flags in (0, PRIVATE, CLOCK_REALTIME, PRIVATE | CLOCK_REALTIME):
        refused = {answer(machine, "futex", 0, op | flags) for op in (2, 6, 7, 8, 11, 12, 13, 512)}
        assert refused == {ERRNO | errno.ENOSYS}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("clock", [0, CLOCK_REALTIME])
def test_a_futex_is_of_one_process(machine: str, clock: int) -> None:
    """Of two that map the same file, one could wake the other."""
    operations, waits = (0, 1, 3, 4, 5, 9, 10), {0, 9}
    assert {answer(machine, "futex", 0, op | PRIVATE | clock) for op in operations} == {ALLOW}
    assert {answer(machine, "futex", 0, op | clock) for op in waits} == {ERRNO | errno.EAGAIN}
    assert {answer(machine, "futex", 0, op | clock) for op in {*operations} - waits} == {ERRNO | errno.EINVAL}


@pytest.mark.parametrize("machine", MACHINES)
def test_no_name_is_decided_twice(machine: str) -> None:
    assert not ALLOWED & REFUSED
    assert not CONDITIONAL & (ALLOWED | REFUSED)
    assert METADATA < ALLOWED
    numbers = TABLES[machine].numbers
    assert len(set(numbers.values())) == len(numbers)
    assert not set(numbers.values()) & set(TABLES[machine].xattr)


def test_the_abis_are_64_bit_little_endian() -> None:
    elf_machines = {"x86_64": 62, "aarch64": 183}
    assert {name: table.audit_arch for name, table in TABLES.items()} == {
        name: 0xC0000000 | number for name, number in elf_machines.items()
    }


def test_x86_64_has_every_call_and_newer_machines_lack_the_old_ones() -> None:
    names = ALLOWED | REFUSED | CONDITIONAL
    assert names <= TABLES["x86_64"].numbers.keys()
    assert (ALLOWED | CONDITIONAL) - TABLES["aarch64"].numbers.keys() == ONLY_OLDER_MACHINES


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernel_headers(machine: str) -> None:
    """Calls newer than the headers are left out; asm-generic is aarch64's own list."""
    if not HEADERS[machine].exists():
        pytest.skip(f"{HEADERS[machine]} is not installed")
    header = _numbers_in(HEADERS[machine].read_text())
    known = {name: number for name, number in TABLES[machine].numbers.items() if number <= max(header.values())}
    assert known == {name: header[name] for name in known}
    assert [header[name] for name in ("setxattr", "fremovexattr")] == [
        TABLES[machine].xattr[0],
        TABLES[machine].xattr[-1],
    ]


def _numbers_in(text: str) -> dict[str, int]:
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    aliases = re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text)
    return numbers | {name: numbers[target] for name, target in aliases if target in numbers}


@given(
    machine=st.sampled_from(MACHINES),
    metadata_calls=st.booleans(),
    own_arch=st.booleans(),
    arch=st.integers(0, HIGH - 1),
    number=st.integers(0, 600) | st.integers(0, HIGH - 1),
    arguments=st.lists(st.integers(0, 0x300) | st.integers(0, (1 << 64) - 1), min_size=6, max_size=6),
)
@settings(max_examples=fewer_quickly(400), deadline=None)
def test_whatever_is_called_the_answer_is_a_known_one(
    machine: str, metadata_calls: bool, own_arch: bool, arch: int, number: int, arguments: list[int]
) -> None:
    table = TABLES[machine]
    native = own_arch or arch == table.audit_arch
    result = verdict(
        FILTERS[machine, metadata_calls], Call(table.audit_arch if own_arch else arch, number, tuple(arguments))
    )
    codes = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOMEM, errno.ENOPROTOOPT)
    assert result in {ALLOW, KILL, *(ERRNO | code for code in codes)}
    may_pass = {table.numbers[name] for name in ALLOWED | CONDITIONAL if name in table.numbers}
    assert result != ALLOW or (native and number in may_pass)
    assert native or result == KILL


@pytest.mark.parametrize("key", FILTERS)
def test_the_kernel_would_load_the_filter(key: tuple[str, bool]) -> None:
    assert len(load(FILTERS[key])) < 1024


def test_a_jump_that_does_not_fit_is_an_error() -> None:
    body = seccomp.one_of(0, range(300), errno.EPERM)
    with pytest.raises(struct.error):
        seccomp.assemble(seccomp.on(1, [*body, seccomp.ALLOW]))


RETURN = struct.pack("=HBBI", 0x06, 0, 0, ALLOW)


@pytest.mark.parametrize(
    "program",
    [
        b"",
        RETURN[:-1],
        struct.pack("=HBBI", 0x20, 0, 0, 0),  # no return
        struct.pack("=HBBI", 0x20, 0, 0, 64) + RETURN,  # reads beyond the data
        struct.pack("=HBBI", 0x20, 0, 0, 2) + RETURN,  # reads half a word
        struct.pack("=HBBI", 0x15, 1, 0, 0) + RETURN,  # jumps beyond the end
        struct.pack("=HBBI", 0x05, 0, 0, 0xFFFFFFFF) + RETURN,  # jumps back
        struct.pack("=HBBI", 0x07, 0, 0, 0) + RETURN,  # an instruction that is not used here
        RETURN * 4097,
    ],
)
def test_the_simulator_refuses_what_the_kernel_would_not_load(program: bytes) -> None:
    with pytest.raises(InvalidProgram):
        load(program)
