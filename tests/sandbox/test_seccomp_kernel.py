"""The simulator and the filter, held against this machine's kernel."""

import ctypes
import errno
import json
import os
import random
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from darkroom.sandbox._kernel import seccomp, syscalls
from darkroom.sandbox._kernel.syscalls import TABLES
from tests.sandbox.bpf import ALLOW, ERRNO, KILL, Call, load, verdict
from tests.sandbox.filters import (
    CLONE_THREAD,
    CONDITIONAL,
    FILTERS,
    HIGH,
    PID,
    THREAD_OF_LIBC,
)

needs_table = pytest.mark.skipif(syscalls.machine() not in TABLES, reason="there is no table for this machine")

MARK = 0x5EC0_4D31_7E57_AB1E
"""As a call's sixth argument: answer, do not run."""
WOULD_ALLOW, WOULD_KILL = 1001, 1002
# uretprobe and uprobe of x86-64: newer kernels take them past every filter, and end who is not a probe
NEVER_FILTERED = (335, 336)


def _rehearsal(program: bytes) -> bytes:
    """Only marked calls meet the program, and its verdicts become error numbers: any call can be tried safely."""
    low, high, end = MARK & 0xFFFFFFFF, MARK >> 32, struct.pack("=HBBI", 0x06, 0, 0, ALLOW)
    marked = [(0x20, 0, 0, 16 + 40), (0x15, 0, 2, low), (0x20, 0, 0, 16 + 44), (0x15, 1, 0, high)]
    prefix = b"".join(struct.pack("=HBBI", *step) for step in marked) + end
    swaps = {ALLOW: ERRNO | WOULD_ALLOW, KILL: ERRNO | WOULD_KILL}
    steps = (
        step._replace(operand=swaps.get(step.operand, step.operand)) if step.code == 0x06 else step
        for step in load(program)
    )
    return prefix + b"".join(struct.pack("=HBBI", *step) for step in steps)


def _kernel_answers(program: bytes, calls: list[list[int]]) -> list[int]:
    def child() -> object:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall.restype = ctypes.c_long
        syscalls.forbid_new_privileges()
        seccomp.install_filter(_rehearsal(program))
        answers = []
        for number, *arguments in calls:
            words = [ctypes.c_ulong(word) for word in (*arguments, MARK)]
            libc.syscall(ctypes.c_long(number), *words)
            answers.append(ctypes.get_errno())
        return answers

    code, answers = run_in_child(child)
    assert code == 0
    swaps = {WOULD_ALLOW: ALLOW, WOULD_KILL: KILL}
    return [swaps.get(number, ERRNO | number) for number in answers]


def run_in_child(work: Callable[[], object]) -> tuple[int, object]:
    """Its exit status (negative: the signal) and what it returned, as JSON; None where it did not come so far."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _report(work, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), json.loads(text) if text else None


def _report(work: Callable[[], object], fd: int) -> NoReturn:
    code = 1
    try:
        os.write(fd, json.dumps(work()).encode())
        code = 0
    finally:
        os._exit(code)


def _under_the_filter(work: Callable[[], object], *, metadata_calls: bool = True) -> tuple[int, object]:
    def child() -> object:
        syscalls.forbid_new_privileges()
        seccomp.install_filter(seccomp.build_filter(metadata_calls=metadata_calls))
        return work()

    return run_in_child(child)


def _error_of(call: Callable[[], object]) -> str | None:
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return None


def _random_calls(n_calls: int) -> list[list[int]]:
    """Every number at least once, then numbers and arguments at the edges that the conditions look at."""
    dice = random.Random(5)
    edges = [0, 1, 2, 3, 9, 128, 0x201, 0x5401, CLONE_THREAD, THREAD_OF_LIBC, PID, HIGH, HIGH - 1, (1 << 64) - 1]
    conditional = [TABLES[syscalls.machine()].numbers.get(name, 0) for name in sorted(CONDITIONAL)]
    numbers = [number for number in range(1024) if number not in NEVER_FILTERED]
    numbers += [dice.choice(conditional) for _ in range(n_calls)]
    return [
        [number, *(dice.choice(edges) ^ dice.choice([0, 0, dice.getrandbits(64)]) for _ in range(5))]
        for number in numbers
    ]


@needs_table
@pytest.mark.parametrize("metadata_calls", [True, False])
def test_the_simulator_answers_as_the_kernel_does(metadata_calls: bool) -> None:
    machine, calls = syscalls.machine(), _random_calls(10_000)
    program, arch = FILTERS[machine, metadata_calls], TABLES[machine].audit_arch
    simulated = [verdict(program, Call(arch, number, (*arguments, MARK))) for number, *arguments in calls]
    assert len(set(simulated)) > 6
    assert simulated == _kernel_answers(program, calls)


@pytest.mark.skipif(syscalls.machine() != "x86_64", reason="only x86-64 has a second ABI")
def test_the_kernel_agrees_that_x32_kills() -> None:
    numbers = [0x40000000, 0x40000027, 0x7FFFFFFF]
    assert _kernel_answers(FILTERS["x86_64", True], [[number, 0, 0, 0, 0, 0] for number in numbers]) == [KILL] * 3
    code, _ = _under_the_filter(lambda: ctypes.CDLL(None).syscall(ctypes.c_long(0x40000027)))
    assert code == -signal.SIGSYS


@needs_table
def test_a_filtered_process_cannot_signal_its_parent() -> None:
    parent, kill = os.getpid(), TABLES[syscalls.machine()].numbers["tgkill"]

    def signals() -> object:
        libc = ctypes.CDLL(None, use_errno=True)
        own = libc.syscall(
            ctypes.c_long(kill), ctypes.c_long(os.getpid()), ctypes.c_long(os.getpid()), ctypes.c_long(0)
        )
        other = libc.syscall(ctypes.c_long(kill), ctypes.c_long(parent), ctypes.c_long(parent), ctypes.c_long(0))
        return [own, other, ctypes.get_errno()]

    assert _under_the_filter(signals) == (0, [0, -1, errno.EPERM])


@needs_table
def test_a_pair_of_datagram_sockets_reaches_no_other_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "log"))
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

        def sends() -> object:
            refused = _error_of(lambda: near.sendto(b"to the host", str(tmp_path / "log")))
            near.send(b"to the other end")
            return [refused, far.recv(99).decode()]

        assert _under_the_filter(sends) == (0, ["EPERM", "to the other end"])
        near.close()
        far.close()


@needs_table
def test_a_file_that_is_only_readable_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "library.py"
    file.write_text("import this")

    def truncates() -> object:
        return [
            _error_of(lambda: os.open(file, os.O_RDONLY | os.O_TRUNC)),
            _error_of(lambda: os.open(file, 3 | os.O_TRUNC)),
            _error_of(lambda: os.truncate(file, 0)),
        ]

    assert _under_the_filter(truncates, metadata_calls=False) == (0, ["EPERM", "EPERM", "EPERM"])
    assert file.read_text() == "import this"


@needs_table
def test_a_wait_goes_on_after_a_stop() -> None:
    """The kernel resumes poll by restart_syscall; a session is stopped between two calls."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        syscalls.forbid_new_privileges()
        seccomp.install_filter(seccomp.build_filter(metadata_calls=True))
        os.write(writing, b".")
        _report(lambda: _error_of(lambda: select.poll().poll(500)), writing)
    os.close(writing)
    assert os.read(reading, 1) == b"."
    time.sleep(0.1)  # by then it waits
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(pid, signal.SIGCONT)
    with os.fdopen(reading) as pipe:
        assert json.loads(pipe.read()) is None
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
