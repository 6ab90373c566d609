"""A Slurm with one node, this machine, under a configuration of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import wait_until

CONFIGURATION = """\
ClusterName=darkroom
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={n_cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def daemon(*command: str) -> Iterator[None]:
    """A daemon that stays in the foreground; killed at the end."""
    program = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{command[0]} is not installed; `make e2e` installs it")
    with subprocess.Popen([program, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[str]:
    """A Slurm that takes jobs; the file with its configuration, which ``SLURM_CONF`` names meanwhile."""
    for part in ("state", "spool"):
        (folder / part).mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            folder=folder,
            user=getpass.getuser(),
            n_cpus=os.cpu_count(),
            controller_port=free_port(),
            node_port=free_port(),
        )
    )
    key = folder / "munge.key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o400)
    own = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(configuration))
        stack.enter_context(daemon("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *own))
        wait_until((folder / "munge.socket").exists)
        stack.enter_context(daemon("slurmctld", "-D"))
        stack.enter_context(daemon("slurmd", "-D"))
        wait_until(is_idle)
        yield str(configuration)


def is_idle() -> bool:
    said = subprocess.run(["sinfo", "--noheader", "--format", "%T"], capture_output=True, text=True, check=False)
    return said.stdout.strip() == "idle"
