"""Rollouts that wait for one another at each turn, against rollouts that go on by themselves.

    python -m measurements.server_rollouts                 # 16 x 8 rollouts, three seeds, a few minutes
    python -m measurements.server_rollouts --url http://127.0.0.1:8000/v1 --model FOLDER   # on a `vllm serve` of FOLDER

Without ``--url`` the engine is simulated in time only: a step writes one token of every request that is under way and
takes ``STEP_SECONDS + SEQUENCE_SECONDS * n`` (continuous batching: a 7B model in bfloat16 reads its 15 GB of weights
per step, and the attention of each sequence comes on top); a request first waits ``PREFILL_SECONDS``. A server is asked
for as many tokens, of no meaning, after the real prompt and ``IMAGE_TOKENS`` before it. Rollouts write code 0 to 4
times, with as many tokens as a log-normal distribution says. All else is real: the loop, GRPO-ATS's segments, the
sandbox and its code, observations. Three ways, the same rollouts:

- together: a batch of requests per segment, code after it (TRL's ``VLLMGeneration``);
- together, early: each turn by itself, code starts at its tag, the next turns when all of a batch are done;
- alone: ``ServerTurns``.
"""

import asyncio
import math
import os
import random
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Annotated, Any

import httpx2
import typer
from PIL import Image

from darkroom.train.runs.command_line import ENVIRONMENT

STEP_SECONDS, SEQUENCE_SECONDS, PREFILL_SECONDS = 0.008, 0.00006, 0.05
TOKENS_PER_TICK = 4
IMAGE_TOKENS = 1300
"""Of an image of a megapixel."""
MEDIAN_TOKENS, SIGMA, MOST_TOKENS, MOST_ROUNDS = 150, 0.6, 1000, 4
THOUGHT = "I look at the image and then at the small sign. "
CODE = """
```python
from PIL import Image
image = Image.open(image_path)
image.crop(({0}, {0}, {0} + 320, {0} + 240)).resize((640, 480)).save('crop.png')
print('crop.png')
```
</code>"""
ANSWER = "</think>\n<answer>red</answer><|im_end|>"


@dataclass
class Engine:
    """Continuous batching, in time only. ``wait`` blocks until a request's tokens are written."""

    _lock: threading.Condition = field(default_factory=threading.Condition)
    _left: dict[threading.Event, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threading.Thread(target=self._write, daemon=True).start()

    def wait(self, prompt: list[int], n_tokens: int) -> None:
        time.sleep(PREFILL_SECONDS)
        done = threading.Event()
        with self._lock:
            self._left[done] = n_tokens
            self._lock.notify()
        done.wait()

    def _write(self) -> None:
        due = 0.0
        while True:
            with self._lock:
                if not self._left:
                    self._lock.wait_for(lambda: self._left)
                    due = time.monotonic()
                due += TOKENS_PER_TICK * (STEP_SECONDS + SEQUENCE_SECONDS * len(self._left))
            time.sleep(max(0.0, due - time.monotonic()))
            with self._lock:
                for request in list(self._left):
                    self._left[request] -= TOKENS_PER_TICK
                    if self._left[request] <= 0:
                        del self._left[request]
                        request.set()


class ServedEngine:
    """A server with vLLM's completions, which is asked for as many tokens; what it writes is not read."""

    def __init__(self, url: str, model: str, n_at_once: int) -> None:
        limits = httpx2.Limits(max_connections=n_at_once, max_keepalive_connections=n_at_once)
        self._client, self._url, self._model = httpx2.Client(timeout=600, limits=limits), url, model

    def wait(self, prompt: list[int], n_tokens: int) -> None:
        body = {
            "model": self._model,
            "prompt": [1] * IMAGE_TOKENS + prompt,
            "max_tokens": n_tokens,
            "ignore_eos": True,
            "logprobs": 0,
        }
        self._client.post(f"{self._url}/completions", json=body).raise_for_status()


class Writer:
    """The model: what each rollout writes, request by request. It has the interfaces of TRL's engine and client."""

    base_url, temperature, repetition_penalty, top_p, top_k, min_p, logprobs = "", 1.0, 1.0, 1.0, 0, None, 0
    structured_outputs_regex, max_completion_length = None, 0
    processing_class = SimpleNamespace(image_token_id=None)

    def __init__(self, tokenizer: Any, engine: Engine | ServedEngine, *, n_rollouts: int, seed: int) -> None:
        self.engine, self.vllm_client, self.generation_kwargs = engine, self, {}
        self.session = SimpleNamespace(get_adapter=lambda _: SimpleNamespace(init_poolmanager=lambda *_: None))
        self._threads = ThreadPoolExecutor(n_rollouts)
        chance, encode = random.Random(seed), lambda text: tokenizer(text)["input_ids"]
        thought = encode(THOUGHT * MOST_TOKENS)
        self.requests: list[deque[list[int]]] = []
        for _ in range(n_rollouts):
            n_rounds, requests = chance.randint(0, MOST_ROUNDS), deque()
            for place in range(n_rounds + 1):
                n_tokens = min(MOST_TOKENS, round(chance.lognormvariate(math.log(MEDIAN_TOKENS), SIGMA)))
                words = [*encode("<think>"), *thought[:n_tokens]]
                if place < n_rounds:
                    requests += [[*words, *encode("\n<code>")], encode(CODE.format(chance.randint(0, 600)))]
                else:
                    requests.append([*words, *encode(ANSWER)])
            self.requests.append(requests)

    def image_features(self, images: Any) -> list[None]:
        time.sleep(PREFILL_SECONDS)
        return [None]

    def generate(self, prompts: list[list[int]], num_generations: int = 0, **_: Any) -> Any:
        written = list(self._threads.map(self._one, prompts)) if len(prompts) > 1 else [self._one(prompts[0])]
        logprobs = [[[-1.0]] * len(ids) for ids in written]
        if num_generations:
            return prompts, written, logprobs, None
        return {"completion_ids": written, "logprobs": logprobs}

    def _one(self, prompt: list[int]) -> list[int]:
        ids = self.requests[prompt[0]].popleft()
        self.engine.wait(prompt, len(ids))
        return ids


def players_of(processor: Any, n_prompts: int, n_each: int) -> list[Any]:
    """Rollouts with real sandboxes, not yet opened."""
    from darkroom.pipelines.models.tasks import Task
    from darkroom.pipelines.records import Sample, Truth
    from darkroom.train.rl.rollouts.active_rollout import ActiveRollout
    from darkroom.train.rl.rollouts.environment import SandboxEnvironment
    from darkroom.train.rl.rollouts.transcript import Transcript

    opening, players = processor.tokenizer("<|im_start|>assistant\n")["input_ids"], []
    for number in range(n_prompts * n_each):
        prompt = number // n_each
        image = Image.new("RGB", (1280, 960), (prompt * 10, 90, 90))
        environment = SandboxEnvironment()
        environment.reset(sample_id=f"s{prompt}", protocol="thyme", images=[image])
        sample = Sample(f"s{prompt}", "signs", "1", "CC0-1.0", (), "?", (), "red", Truth(), "attribute")
        task = Task(str(number), "training", sample, (), {}, (), seed=number)
        transcript = Transcript([number, *opening], [image])
        players.append(ActiveRollout(environment, task, transcript, MOST_ROUNDS, repetition=None))
    return players


def measured(way: str, processor: Any, writer: Writer, players: list[Any]) -> tuple[float, float, Any]:
    """Seconds of a batch, the share in which nothing was written, and the rollouts."""
    from darkroom.pipelines.models.protocols import PROTOCOLS
    from darkroom.train.rl.rollouts.active_rollout import EngineClock, ModelInTraining, TurnWriter
    from darkroom.train.rl.rollouts.batched_turns import BatchedTurns
    from darkroom.train.rl.rollouts.sampling import TurnWatcher
    from darkroom.train.rl.rollouts.server_turns import ServerTurns
    from darkroom.train.rl.rollouts.transcript import GeneratedTurn
    from darkroom.train.rl.rollouts.vllm_ats import in_segments
    from darkroom.train.rl.rollouts.vllm_server import VllmServer

    tokenizer, clock, threads = processor.tokenizer, EngineClock(), ThreadPoolExecutor(len(players))

    def watcher(player: Any) -> TurnWatcher:
        ends = frozenset([tokenizer.eos_token_id])
        return TurnWatcher(tokenizer, PROTOCOLS["thyme"], n_left=32_000, ends=ends, on_code=player.begin)

    def rows(some: list[Any]) -> list[GeneratedTurn]:
        prompts = [[*player.transcript.prompt, *player.transcript.ids] for player in some]
        watchers = [watcher(player) for player in some]
        ids, logprobs = in_segments(writer, prompts, None, watchers, stops=["</code>"] * len(some), adaptive=True)
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        endings = [one.ending for one in watchers]
        return [GeneratedTurn(*turn) for turn in zip(ids, texts, endings, logprobs, strict=True)]

    def batch(write: Callable[[list[Any]], list[GeneratedTurn]]) -> BatchedTurns:
        def clocked(some: Any) -> list[GeneratedTurn]:
            with clock:
                return write(list(some))

        return BatchedTurns(clocked)

    ways: dict[str, Callable[[], TurnWriter]] = {
        "together": lambda: batch(rows),
        "together, early": lambda: batch(lambda some: [turn[0] for turn in threads.map(lambda one: rows([one]), some)]),
        "alone": lambda: ServerTurns(
            VllmServer(writer), tokenizer=tokenizer, watcher=watcher, clock=clock, adaptive=True
        ),
    }
    model = ModelInTraining(ways[way](), processor=processor, max_tokens=32_000)
    start = time.perf_counter()
    rollouts = asyncio.run(model.run_batch(players))
    return time.perf_counter() - start, clock.waiting_share, rollouts


def main(
    prompts: Annotated[int, typer.Option(help="Prompts of a batch.")] = 16,
    rollouts: Annotated[int, typer.Option(help="Rollouts of each prompt.")] = 8,
    seeds: Annotated[int, typer.Option(help="Batches, each with other lengths and rounds.")] = 3,
    url: Annotated[str, typer.Option(help="A server, with /v1, instead of the simulation.")] = "",
    model: Annotated[str, typer.Option(help="What it serves.")] = "",
) -> None:
    """Measure what it costs rollouts to wait for one another."""
    os.environ.update(ENVIRONMENT)
    from darkroom.train.models.loading import load_processor
    from darkroom.train.rl.rollouts.sandbox_pool import PROMPT_GROUPS
    from darkroom.train.tiny import build

    engine = ServedEngine(url, model, prompts * rollouts) if url else Engine()
    names = ("together", "together, early", "alone")
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "tiny", texts=[THOUGHT, CODE, ANSWER])
        processor = load_processor(Path(folder) / "tiny")
    n, ratios = prompts * rollouts, []
    print(f"{prompts} x {rollouts} rollouts; rollouts a second, and the share of the time in which nothing is written")
    try:
        _batch("alone", processor, engine, 1, 2, seed=0)  # starts the pool
        for seed in range(seeds):
            made = {name: _batch(name, processor, engine, prompts, rollouts, seed=seed) for name in names}
            assert made["alone"][2] == made["together"][2] == made["together, early"][2], "other rollouts"
            ratios.append([made[name][0] / made["alone"][0] for name in names[:2]])
            cells = [f"{name} {n / made[name][0]:.2f} ({made[name][1]:.0%})" for name in names]
            print(f"seed {seed}: {'; '.join(cells)}; ratios {ratios[-1][0]:.2f}, {ratios[-1][1]:.2f}", flush=True)
    finally:
        PROMPT_GROUPS.close()
    print(f"alone over together {median(r for r, _ in ratios):.2f}, over early {median(r for _, r in ratios):.2f}")


def _batch(way: str, processor: Any, engine: Engine | ServedEngine, prompts: int, rollouts: int, *, seed: int) -> Any:
    players = players_of(processor, prompts, rollouts)
    writer = Writer(processor.tokenizer, engine, n_rollouts=len(players), seed=seed)
    try:
        seconds, waiting, made = measured(way, processor, writer, players)
    finally:
        for player in players:
            player.environment._end()
    return (
        seconds,
        waiting,
        [(len(one.rounds), [step.observation.text for step in one.rounds], one.error) for one in made],
    )


if __name__ == "__main__":
    typer.run(main)
