"""One client that has shards of problems voted on, in a process of its own: a shard for every line that it reads.

    python -m measurements.rl_client aiohttp|darkroom URL HOME n|single     # reads shards' names, prints JSON for each

``darkroom`` is the stage as the asset runs it: tables, ledger, policy. ``aiohttp`` sends the same requests and counts
the votes in the answers, nothing else: no ledger, no retries, no records, no table.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy
from darkroom.pipelines.rl.candidates import turn_of
from darkroom.pipelines.rl.suitability import PROMPT, VOTES, Suitability
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.judges.policy import SCHEMA
from measurements.policy_client import CONCURRENCY, memory_mb
from measurements.rl_shards import open_workspace

N_VOTES = 8
Work = Callable[[], int]
"""Has all votes of a shard made, and tells how many there are."""


def darkroom(url: str, workspace: Workspace, partition: str, *, takes_n: bool) -> Work:
    def materialize() -> int:
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY, send_n=takes_n)
        shard = Shard(workspace, partition)
        shard.materialize(Suitability(judge=OpenAIPolicy(endpoint, workspace.images), n_votes=N_VOTES))
        return workspace.tables.n_rows(shard.key(VOTES)) * N_VOTES

    return materialize


def least(url: str, workspace: Workspace, partition: str, *, takes_n: bool) -> Work:
    turns = [turn_of(sample, PROMPT) for sample in Shard(workspace, partition).samples().values()]
    asked = [([_as_sent(said) for said in turn.messages], turn.seed) for turn in turns]
    return lambda: asyncio.run(_voted(url, asked, takes_n=takes_n))


def _as_sent(said: Any) -> dict[str, Any]:
    (part,) = said.parts
    return {"role": said.role, "content": part.text if said.role != "user" else [{"type": "text", "text": part.text}]}


async def _voted(url: str, asked: list[tuple[list[dict[str, Any]], int]], *, takes_n: bool) -> int:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def one(body: dict[str, Any]) -> int:
            async with gate, session.post(f"{url}/chat/completions", json=body) as response:
                said = await response.json()
                votes = [json.loads(choice["message"]["content"])["verdict"] for choice in said["choices"]]
                return votes.count(True) + votes.count(False)

        bodies = (body for messages, seed in asked for body in _bodies(messages, seed, takes_n=takes_n))
        return sum(await asyncio.gather(*map(one, bodies)))


def _bodies(messages: list[dict[str, Any]], seed: int, *, takes_n: bool) -> list[dict[str, Any]]:
    described = {"name": "answer", "schema": SCHEMA}
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048}
    answer = {"stop": [], "response_format": {"type": "json_schema", "json_schema": described}}
    body = {"model": "mock", "messages": messages, **sampling, **answer}
    if takes_n:
        return [{**body, "seed": seed, "n": N_VOTES}]
    return [{**body, "seed": seed + n} for n in range(N_VOTES)]


def main(kind: str, url: str, home: str, takes_n: str) -> None:
    prepare = {"darkroom": darkroom, "aiohttp": least}[kind]
    with open_workspace(Path(home)) as workspace:
        for line in sys.stdin:
            figures = _measured(prepare(url, workspace, line.strip(), takes_n=takes_n == "n"))
            print(json.dumps(figures), flush=True)


def _measured(work: Work) -> dict[str, float]:
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM is the peak from here on
    started, cpu_started = time.perf_counter(), time.process_time()
    n_votes = work()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return {
        "n_votes": n_votes,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "memory_mb": memory_mb("VmRSS"),
        "peak_mb": memory_mb("VmHWM"),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
