"""Processes that share the calls to one endpoint, for the tests on SQLite and PostgreSQL."""

import subprocess
import sys
from itertools import accumulate
from pathlib import Path

WORKER = """
import asyncio, os, sys
from pipelines.models.policies.limiter import ConcurrencyLimiter
from pipelines.models.policies.shared_calls import SharedCalls
from pipelines.storage.ledger import Ledger

url, total, n_calls, moments = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

async def call(limiter, file):
    ticket = await limiter.enter()
    os.write(file, b"+")
    await asyncio.sleep(0.05)
    os.write(file, b"-")
    limiter.leave(ticket, "served")

async def main(ledger):
    limiter, shared = ConcurrencyLimiter(64), SharedCalls(ledger, "http://here m", total)
    shared.keep(limiter)
    file = os.open(moments, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    await asyncio.gather(*(call(limiter, file) for _ in range(n_calls)))
    await shared.close()

with Ledger(url) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(main(ledger))
"""


def most_in_flight_of_three(url: str, moments: Path, *, total: int, n_calls: int) -> int:
    """The most calls that three processes had in flight together, each of which made ``n_calls``."""
    command = [sys.executable, "-c", WORKER, url, str(total), str(n_calls), str(moments)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=300)
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    in_flight = list(accumulate({"+": 1, "-": -1}[moment] for moment in moments.read_text()))
    assert (in_flight[-1], len(in_flight)) == (0, 3 * n_calls * 2)
    return max(in_flight)
