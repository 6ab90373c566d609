"""One seed of the learning proof: trains a tiny model in every way and evaluates each checkpoint on held-out rows.

    python -m benchmarks.proof_seed data/learning_proof 0

untrained    random weights; the tokenizer has seen the training rows' texts
unmasked     SFT with the loss on every token after the question, observations too (``--train-observations``)
masked       the same SFT with the masks
grpo         the masked model, then GRPO with Thyme's method

All are made by the programs of ``train/`` and evaluated by ``train.evaluate``, which keep what is complete.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from train.program import guarded

MODELS = ("untrained", "unmasked", "masked", "grpo")
DIGITS = r"</?[a-z_]+>|(?<!\d)\d(?=\d{2}(?!\d))|(?<=\D\d)\d(?=\d(?!\d))|(?<=\D\d\d)\d(?!\d)"
"""Tags, and every digit of a number of three digits, are tokens of their own: a coordinate is copied digit by digit."""
SPREAD = 0.1
"""Of the random weights: with Qwen's 0.02 a model this small does not learn to see in the time there is."""
LONGEST_TURN, LONGEST_ROLLOUT, MAX_ROUNDS = 120, 240, 2


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is trained and asked. The defaults are the proof's."""

    sft_steps: int = 600
    grpo_steps: int = 20
    grpo_batch: int = 32
    n_asked: int | None = None
    n_controls: int = 48


@dataclass(frozen=True, slots=True)
class Course:
    """One seed's folder below ``root``, which also holds the rows."""

    root: Path
    seed: int
    scale: Scale = Scale()

    @property
    def folder(self) -> Path:
        """Where its checkpoints and evaluations lie, by the names of ``MODELS``."""
        return self.root / f"seed-{self.seed}"

    @property
    def rows(self) -> Path:
        """The training rows."""
        return self.root / "train/datasets/sft/crop"

    @property
    def held_out(self) -> Path:
        """Rows of other walls."""
        return self.root / "held_out/datasets/sft/crop"

    def run(self) -> dict[str, Any]:
        """Everything; returns the figures by model."""
        self.build()
        self.finetune("unmasked")
        self.finetune("masked")
        self.reinforce()
        return {"seed": self.seed, "models": {name: self.evaluated(name) for name in MODELS}}

    def build(self) -> None:
        """The untrained model."""
        from train import tiny

        tiny.build(
            self.folder / "untrained",
            seed=self.seed,
            texts=tiny.dataset_texts(self.rows),
            split=DIGITS,
            spread=SPREAD,
        )

    def finetune(self, name: str) -> None:
        """SFT with or without masks."""
        from train.sft import finetune
        from train.sft_settings import Arguments

        arguments = Arguments(
            max_steps=self.scale.sft_steps,
            batch_size=8,
            learning_rate=3e-3,
            train_observations=name == "unmasked",
            seed=self.seed,
        )
        finetune(self.rows, self.folder / "untrained", self.folder / name, arguments)

    def reinforce(self, start: str = "masked", name: str = "grpo", rows: Path | None = None, **given: Any) -> Any:
        """GRPO from ``start``; returns its history."""
        from train.grpo import reinforce
        from train.rollouts.settings import Arguments

        terms = {
            "max_steps": self.scale.grpo_steps,
            "generations": 4,
            "batch_size": self.scale.grpo_batch,
            "learning_rate": 3e-4,
            "beta": 0.0,
            "repetition_penalty": 1.0,  # a program repeats itself by its nature, and here a line is one token
            "max_rounds": MAX_ROUNDS,
            "max_tokens": LONGEST_ROLLOUT,
            "seed": self.seed,
        }
        arguments = Arguments.of("thyme", **terms | given)
        return reinforce(rows or self.rows, self.folder / start, self.folder / name, arguments)

    def evaluated(self, name: str) -> dict[str, Any]:
        """Shares of rollouts, sampled at temperature 1 and greedy, on held-out rows."""
        n_controls = self.scale.n_controls if name == "grpo" else 0
        found = {
            "sampled": self._evaluated(name, temperature=1.0),
            "greedy": self._evaluated(name, temperature=0.0, controls=n_controls),
        }
        return {how: _shares(*made) for how, made in found.items()}

    def _evaluated(self, name: str, *, temperature: float, controls: int = 0) -> tuple[Path, Any]:
        from train.evaluate import evaluate
        from train.evaluation.settings import Settings

        settings = Settings(
            output=self.folder / f"evaluations/{name}-{temperature:g}",
            model=str(self.folder / name),
            datasets=(self.held_out,),
            split="all",
            limit=self.scale.n_asked,
            temperature=temperature,
            max_tokens=LONGEST_TURN,
            max_rounds=MAX_ROUNDS,
            batch_size=16,
            seed=self.seed,
            controls=controls,
            shown=4,
            home=self.folder / "home",
        )
        found = evaluate(settings)
        return found.folder, found.made


def _shares(folder: Path, made: Any) -> dict[str, Any]:
    rollouts = pq.read_table(folder / "rollouts.parquet", columns=["rounds", "right", "fault"]).to_pylist()
    n = len(rollouts)
    return {
        "n": n,
        "executed": sum(any(_ok(turn) for turn in one["rounds"]) for one in rollouts) / n,
        "right": sum(one["right"] for one in rollouts) / n,
        "unanswered": sum(one["fault"] is not None for one in rollouts) / n,
        "controls": made["results"]["all"]["controls"],
    }


def _ok(turn: Any) -> bool:
    return bool(turn["observation"]["status"] == "ok")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("seed", type=int)
    options = parser.parse_args()
    with guarded():
        course = Course(options.root, options.seed)
        figures = course.run()
    (course.folder / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
