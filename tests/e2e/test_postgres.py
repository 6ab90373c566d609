"""The ledger on a real PostgreSQL, started for the test from Debian's package."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.ledger import Act, Ledger


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("postgresql is not installed; `make e2e` installs it")
    return found[-1]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the user ``postgres`` may enter, as it may not what lies below pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="postgres-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    binaries = programs()
    as_user: list[str] = []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    run = lambda *command: subprocess.run([*as_user, *command], check=True, cwd=folder, capture_output=True)  # noqa: E731
    run(str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "darkroom", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    run(str(binaries / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql+psycopg://darkroom@127.0.0.1:{port}/postgres"
    finally:
        run(str(binaries / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")


def test_an_act_is_found_again_by_another_connection(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.put("a" * 64, "policy", {"n": 1}, Act({"text": "hé"}, seconds=1.5, cost_usd=0.25))
    with Ledger(url) as ledger:
        assert ledger.get("a" * 64) == Act({"text": "hé"}, seconds=1.5, cost_usd=0.25)


def test_of_many_writers_the_first_one_stays(url: str) -> None:
    def write(n: int) -> int:
        with Ledger(url) as ledger:
            return int(ledger.put("b" * 64, "policy", {}, Act({"n": n})).result["n"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(write, range(16)))) == 1


def test_once_performs_once(url: str) -> None:
    performed = 0

    async def perform() -> Act:
        nonlocal performed
        performed += 1
        return Act({"n": performed})

    with Ledger(url) as ledger:
        for _ in range(3):
            act = asyncio.run(ledger.once("sandbox", {"code": "print(1)"}, perform))
    assert (performed, act.result["n"]) == (1, 1)


def test_hundreds_of_acts_at_once_are_all_written(url: str) -> None:
    async def all_at_once(ledger: Ledger) -> list[Act]:
        async def perform(n: int) -> Act:
            await asyncio.sleep(0.01)
            return Act({"n": n})

        return await asyncio.gather(*(ledger.once("group", {"n": n}, lambda n=n: perform(n)) for n in range(600)))

    with Ledger(url) as ledger:
        assert [act.result["n"] for act in asyncio.run(all_at_once(ledger))] == list(range(600))
        assert ledger.totals()["group"].acts == 600
