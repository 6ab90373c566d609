"""How much memory a training takes on each GPU, and how long a step lasts, before a GPU is rented.

Exact (a test compares them with the tensors of tiny models): parameters, weights, gradients, AdamW's moments and the
cache of generated tokens. Estimated: activations (checkpointed: the input of every layer, one layer's inside, logits),
and time, from the arithmetic of the passes at ``MFU`` of the peak and from reading the weights for every token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from darkroom.train.runs import TrainError

GIB = 2**30
WEIGHT, GRADIENT, MOMENTS, COMPUTED = 4, 4, 8, 2
"""Bytes per parameter: float32 weights, their gradients, AdamW's two moments, the bfloat16 copy of a forward pass."""
RESERVED = 0.1
"""Proportion of a GPU for fragments, CUDA's context and communication buffers."""
PEAK_FLOPS, BANDWIDTH = 989e12, 3.35e12
"""Of an H100 (SXM): dense bfloat16 operations and bytes of memory per second."""
MFU, READING = 0.35, 0.4
"""Proportions of both that training, and generation with transformers, are assumed to reach."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the formulas need of a model."""

    name: str
    n_parameters: int
    hidden: int
    intermediate: int
    layers: int
    kv_width: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Load:
    """One step on each GPU: rows at a time, passes, tokens per row; ``n_generated`` of them are generated (GRPO)."""

    n_gpus: int
    rows: int
    tokens: int
    passes: int = 1
    n_generated: int = 0
    with_reference: bool = False


def shape_of(model: str) -> ModelShape:
    """Of a folder with config.json, or of a published model: ``7B``, ``qwen3-vl-8b``. Raises ``TrainError``."""
    if (Path(model) / "config.json").is_file():
        from darkroom.train.models.loading import configuration

        configuration(Path(model) / "config.json")  # raises for a broken file, before what takes seconds to import
        from transformers import AutoConfig

        return _shape(Path(model).name, AutoConfig.from_pretrained(model))
    sizes = yaml.safe_load(Path(__file__).with_name("sizes.yaml").read_text())
    name = model.lower()
    name = name if name in sizes else next((known for known in sizes if known.endswith(f"-{name}")), "")
    if not name:
        raise TrainError(f"no model {model!r}: a folder with config.json, or one of {', '.join(sizes)}")
    return _shape(name, _configuration(sizes[name]))


def memory(shape: ModelShape, load: Load, *, sharded: bool) -> dict[str, int]:
    """Bytes on each GPU by what they are for; ``sharded``: FSDP or ZeRO-3, else DDP."""
    n = shape.n_parameters
    share = load.n_gpus if sharded else 1
    one_layer = (n - shape.vocabulary * shape.hidden) // shape.layers
    copies = 2 * one_layer + 2 * shape.vocabulary * shape.hidden if sharded else n
    tokens = load.rows * load.tokens
    parts = {
        "weights": WEIGHT * n // share,
        "gradients": GRADIENT * n // share,
        "optimiser": MOMENTS * n // share,
        "reference model": WEIGHT * n // share if load.with_reference else 0,
        "bfloat16 copies": COMPUTED * copies,
        "activations": COMPUTED * tokens * (shape.layers * shape.hidden + 8 * shape.hidden + 3 * shape.intermediate)
        + 6 * tokens * shape.vocabulary,
    }
    if load.n_generated:  # before the training pass: its activations are not there yet
        parts["activations"] = max(parts["activations"], cache_bytes(shape, tokens))
    return parts


def cache_bytes(shape: ModelShape, tokens: int, *, width: int = COMPUTED) -> int:
    """Keys and values of so many tokens."""
    return 2 * shape.layers * shape.kv_width * tokens * width


def step_seconds(shape: ModelShape, load: Load, *, sharded: bool) -> tuple[float, float]:
    """Seconds of a step that are spent on training and on generation, on H100s."""
    per_token = 8 + (2 if load.with_reference else 0)  # forward, backward, and forward again
    trained = load.rows * load.passes * load.tokens * per_token * shape.n_parameters / (PEAK_FLOPS * MFU)
    read = WEIGHT * shape.n_parameters / (BANDWIDTH * READING)
    if sharded:  # every layer's weights come over NVLink for every token, at about a seventh of the memory's speed
        read += COMPUTED * shape.n_parameters / (BANDWIDTH * READING / 7)
    return trained, load.passes * load.n_generated * read


def count_parameters(configuration: Any) -> int:
    """The parameters of a model that is built without memory."""
    import torch
    from transformers import AutoModelForImageTextToText

    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(configuration)  # type: ignore[no-untyped-call]
    return sum(weight.numel() for weight in model.parameters())


def _shape(name: str, configuration: Any) -> ModelShape:
    text = configuration.get_text_config()
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return ModelShape(
        name,
        count_parameters(configuration),
        text.hidden_size,
        text.intermediate_size,
        text.num_hidden_layers,
        text.num_key_value_heads * head,
        text.vocab_size,
    )


def _configuration(size: Mapping[str, Any]) -> Any:
    from transformers import AutoConfig

    text = {
        "hidden_size": size["hidden"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "num_key_value_heads": size["kv_heads"],
        "intermediate_size": size["intermediate"],
        "vocab_size": size["vocab"],
        **({"head_dim": size["head_dim"]} if "head_dim" in size else {}),
    }
    vision = {**size["vision"], "out_hidden_size": size["hidden"], "num_heads": 16}
    return AutoConfig.for_model(size["type"], text_config=text, vision_config=vision, tie_word_embeddings=size["tied"])
