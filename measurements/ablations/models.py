"""The models of the experiments: random weights, SFT and GRPO, each by the programs of ``train/``.

A model is named; the same name is the same model, made once per seed in ``ROOT/seed-N/NAME`` and shared by every
experiment on that root. The programs skip what is complete and resume what was interrupted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from darkroom.train import tiny
from darkroom.train.tiny import DIGIT_SPLIT
from measurements.ablations.world import ROWS, rows_below

METHODS = Path(__file__).with_name("methods")
"""Methods that only the experiments have."""
SPREAD = 0.1
"""Deviation of the random weights: with Qwen's 0.02 a model this small does not learn to see in the time there is."""
MAX_PIXELS = 4 * 28 * 28
"""An image is four tokens at most, a piece of a wall two: the fewer there are, the sooner a colour is learned."""
SFT: Mapping[str, Any] = {"max_steps": 1200, "batch_size": 8, "learning_rate": 3e-3, "max_pixels": MAX_PIXELS}
GRPO: Mapping[str, Any] = {
    "max_steps": 24,
    "generations": 6,
    "batch_size": 48,
    "learning_rate": 2e-4,
    "schedule": "constant",
    "temperature": 1.0,
    "adaptive_temperature": False,  # else all rollouts of a prompt write the same code: nothing to choose between
    "beta": 0.0,
    "oversample": 1.0,
    "repetition_penalty": 1.0,  # code repeats itself by its nature, and here a line is one token
    "max_rounds": 2,
    "max_tokens": 240,
    "max_pixels": MAX_PIXELS,
}
"""Settings of all the experiments' trainings; a model's own settings stand over it, and a method's terms below."""


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint. ``rows`` names folders of ``world.ROWS``; ``method`` is of GRPO."""

    name: str
    program: Literal["random", "sft", "grpo"]
    start: "Model | None" = None
    rows: tuple[str, ...] = ("train",)
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def chain(self) -> Iterator["Model"]:
        """The models that it starts from, the first one first, and itself."""
        if self.start:
            yield from self.start.chain()
        yield self

    def record(self) -> list[dict[str, Any]]:
        """Everything besides the seed that determines it, as JSON."""
        return [
            {
                "program": model.program,
                "rows": {name: list(ROWS[name]) for name in model.rows},
                "method": model.method,
                "settings": {**_defaults(model.program), **model.settings},
            }
            for model in self.chain()
        ]

    def make(self, root: Path, seed: int) -> Path:
        """Trains it where it is not complete, after what it starts from; returns its folder."""
        folder = root / f"seed-{seed}"
        start = self.start.make(root, seed) if self.start else None
        made = folder / self.name
        datasets = [rows_below(root, name) for name in self.rows]
        if self.program == "random":
            tiny.build(made, seed=seed, texts=tiny.dataset_texts(*datasets), split=DIGIT_SPLIT, spread=SPREAD)
        elif self.program == "sft":
            from darkroom.train.sft import finetune

            finetune(datasets, start or made, made, sft_settings(self, seed))
        else:
            from darkroom.train.grpo import reinforce

            reinforce(datasets[0], start or made, made, grpo_settings(self, seed))
        return made


def sft_settings(model: Model, seed: int) -> Any:
    """Settings as ``darkroom.train.sft`` takes them. Raises pydantic's ``ValidationError`` for unknown ones."""
    from darkroom.train.finetuning.settings import SftSettings

    return SftSettings(**{**SFT, **model.settings, "seed": seed})


def grpo_settings(model: Model, seed: int) -> Any:
    """Settings as ``darkroom.train.grpo`` takes them. Raises ``TrainError`` for an unknown method or settings that
    contradict."""
    from darkroom.train.rl.methods import settings_of

    return settings_of(model.method, **{**GRPO, **model.settings, "seed": seed})


def _defaults(program: str) -> Mapping[str, Any]:
    return {"sft": SFT, "grpo": GRPO}.get(program, {"split": DIGIT_SPLIT, "spread": SPREAD})
