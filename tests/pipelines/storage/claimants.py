"""Processes that want the same acts at once, for the tests of claims on SQLite and PostgreSQL."""

from pathlib import Path

from tests.together import run_together

CLAIMANT = """
import asyncio, os, sys
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger

url, paid, n_acts = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def perform(n):
    with open(paid, "a") as file:
        file.write(f"{n}\\n")
    await asyncio.sleep(0.02)
    return CachedCall({"by": os.getpid()})

async def main(ledger):
    await asyncio.gather(*(ledger.get_or_run("policy", {"n": n}, lambda n=n: perform(n)) for n in range(n_acts)))

with Ledger(url) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(main(ledger))
"""


def paid_by_two(url: str, paid: Path, n_acts: int) -> list[int]:
    """The acts that two processes performed which wanted all of them at the same moment, sorted."""
    run_together(CLAIMANT, 2, [url, str(paid), str(n_acts)])
    return sorted(map(int, paid.read_text().split()))
