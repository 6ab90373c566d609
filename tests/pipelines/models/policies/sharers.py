"""Processes that share the calls to one endpoint, for the tests on SQLite and PostgreSQL."""

from itertools import accumulate
from pathlib import Path

from tests.together import run_together

WORKER = """
import asyncio, os, sys
from darkroom.pipelines.models.policies.limiter import ConcurrencyLimiter
from darkroom.pipelines.models.policies.limiter import SharedCalls
from darkroom.pipelines.storage.ledger import Ledger

url, total, n_calls, moments = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

async def call(limiter, file):
    ticket = await limiter.enter()
    os.write(file, b"+")
    await asyncio.sleep(0.05)
    os.write(file, b"-")
    limiter.leave(ticket, "served")

async def main(ledger):
    limiter, shared = ConcurrencyLimiter(64), SharedCalls(ledger, "http://here m", total)
    shared.keep(limiter, print)
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
    run_together(WORKER, 3, [url, str(total), str(n_calls), str(moments)])
    in_flight = list(accumulate({"+": 1, "-": -1}[moment] for moment in moments.read_text()))
    assert (in_flight[-1], len(in_flight)) == (0, 3 * n_calls * 2)
    return max(in_flight)
