"""One client at work on the mock endpoint, in a process of its own; prints what it took, as JSON.

    python -m benchmarks.policy_client bare|darkroom|stage URL FOLDER N_ROWS N_REFUSED

``bare`` is the openai client on its aiohttp transport and nothing else. ``darkroom`` is the whole layer: ledger, gate,
budget, retries, accounting. ``stage`` is a stage of the engine: the same, and a table of rows and rejects at the end.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import openai

from pipelines.images import ImageStore
from pipelines.ledger import Ledger
from pipelines.messages import message
from pipelines.policies import Endpoint, OpenAIPolicy, PolicyFault, RecordedPolicy, Turn
from pipelines.records import Draft, Provenance, Reject, Sample, Truth
from pipelines.rejects import Reason, reject
from pipelines.stages import Outcome, map_rows, run_stage
from pipelines.tables import TableKey, Tables
from pipelines.tasks import Task

CONCURRENCY = 256
SYSTEM = "Answer the question in <answer></answer>."
KEY = TableKey(("counts", "drafts"), "mock")


def questions(n_rows: int, n_refused: int) -> list[str]:
    """The refused ones are spread over the rows."""
    every = n_rows // n_refused if n_refused else n_rows + 1
    return [f"What is row {n}?{' REFUSED' if n % every == every - 1 else ''}" for n in range(n_rows)]


async def bare(url: str, folder: Path, asked: list[str]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:

        async def one(seed: int, question: str) -> None:
            system = {"role": "system", "content": SYSTEM}
            user = {"role": "user", "content": [{"type": "text", "text": question}]}
            async with gate:
                await client.chat.completions.create(
                    model="mock",
                    messages=[system, user],
                    temperature=1.0,
                    top_p=1.0,
                    max_tokens=2048,
                    seed=seed,
                    stop=["</answer>"],
                )

        await asyncio.gather(*(one(seed, question) for seed, question in enumerate(asked)))


async def darkroom(url: str, folder: Path, asked: list[str]) -> list[Draft | Reject]:
    policy = OpenAIPolicy(Endpoint(url, "mock", concurrency=CONCURRENCY), ImageStore(str(folder / "images")))
    rows = [_sample(n, question) for n, question in enumerate(asked)]
    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        async with RecordedPolicy(policy, ledger) as recorded:
            return await map_rows(rows, lambda row: _draft(row, recorded), concurrency=policy.concurrency)


async def stage(url: str, folder: Path, asked: list[str]) -> list[Draft | Reject]:
    made = await darkroom(url, folder, asked)
    rows = [row for row in made if isinstance(row, Draft)]
    rejects = [row for row in made if isinstance(row, Reject)]
    outcome = Outcome(rows, rejects, len(asked))
    run_stage(Tables(folder / "tables"), KEY, Draft, inputs="mock", perform=lambda: outcome)
    return made


async def _draft(sample: Sample, policy: RecordedPolicy) -> Draft | Reject:
    said = (message("system", SYSTEM), message("user", sample.question))
    task = Task(sample.sample_id, "counts", sample, (), {}, said, int(sample.sample_id))
    try:
        completion = await policy.write(Turn(said, ("</answer>",), task.seed, task))
    except PolicyFault as fault:
        return reject(Reason.POLICY_FAILED, str(fault), stage="counts/drafts", row={}, sample_id=sample.sample_id)
    provenance = Provenance("openai", "mock", "", "{}", "", "", task.seed, "")
    return Draft(sample.sample_id, sample.sample_id, "counts", (), "{}", completion.text, completion.usage, provenance)


def _sample(n: int, question: str) -> Sample:
    return Sample(str(n), "mock", f"row/{n}", "CC0-1.0", (), question, (), "", Truth(), "counts")


_CLIENTS: dict[str, Callable[[str, Path, list[str]], Awaitable[Any]]] = {
    "bare": bare,
    "darkroom": darkroom,
    "stage": stage,
}


def main(kind: str, url: str, folder: str, n_rows: str, n_refused: str) -> None:
    asked = questions(int(n_rows), int(n_refused))
    started, cpu_started = time.perf_counter(), time.process_time()
    made = asyncio.run(_run(_CLIENTS[kind](url, Path(folder), asked)))
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": _most_memory_mb(),
        "n_rejects": sum(isinstance(row, Reject) for row in made or ()),
    }
    print(json.dumps(figures))


async def _run(work: Awaitable[Any]) -> Any:
    return await work


def _most_memory_mb() -> float:
    """Not `ru_maxrss`: a process inherits that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
