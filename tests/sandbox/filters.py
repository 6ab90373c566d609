"""The filters of every machine, and what the tests of both of their sides name."""

import errno

from darkroom.sandbox._kernel import seccomp
from darkroom.sandbox._kernel.seccomp import conditional_calls
from darkroom.sandbox._kernel.syscalls import TABLES
from tests.sandbox.bpf import ERRNO

MACHINES = sorted(TABLES)
PID = 4321
FILTERS = {
    (machine, metadata_calls): seccomp.build_filter(
        metadata_calls=metadata_calls, table=TABLES[machine], process_id=PID
    )
    for machine in MACHINES
    for metadata_calls in (True, False)
}
CONDITIONAL = frozenset(conditional_calls(PID))
EPERM = ERRNO | errno.EPERM
HIGH = 1 << 32
CLONE_THREAD = 0x00010000
THREAD_OF_LIBC, FORK_OF_LIBC = 0x3D0F00, 0x1200011
