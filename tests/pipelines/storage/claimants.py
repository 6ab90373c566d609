"""Processes that want the same acts at once, for the tests of claims on SQLite and PostgreSQL."""

import subprocess
import sys
from pathlib import Path

CLAIMANT = """
import asyncio, os, sys
from pipelines.storage.acts import Act
from pipelines.storage.ledger import Ledger

url, paid, n_acts = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def perform(n):
    with open(paid, "a") as file:
        file.write(f"{n}\\n")
    await asyncio.sleep(0.02)
    return Act({"by": os.getpid()})

async def main(ledger):
    await asyncio.gather(*(ledger.once("policy", {"n": n}, lambda n=n: perform(n)) for n in range(n_acts)))

with Ledger(url) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(main(ledger))
"""


def paid_by_two(url: str, paid: Path, n_acts: int) -> list[int]:
    """The acts that two processes performed which wanted all of them at the same moment, sorted."""
    command = [sys.executable, "-c", CLAIMANT, url, str(paid), str(n_acts)]
    claimants = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for claimant in claimants:
        assert claimant.stdout is not None
        assert claimant.stdout.readline() == "ready\n"
    for claimant in claimants:
        assert claimant.stdin is not None
        claimant.stdin.write("go\n")
        claimant.stdin.flush()
    for claimant in claimants:
        claimant.communicate(timeout=300)
    assert [claimant.returncode for claimant in claimants] == [0, 0]
    return sorted(map(int, paid.read_text().split()))
