"""One seed of the learning proof: trains a tiny model in every way and evaluates each checkpoint on held-out rows.

    python -m benchmarks.proof_seed data/learning_proof 0 untrained unmasked masked grpo

untrained    random weights that were taught the colours, on closeups and without programs: every model that one would
             start from sees, and this one would spend most of its training on it
unmasked     SFT with the loss on every token after the question, observations too (``--train-observations``)
masked       the same SFT with the masks
grpo         the masked model, then GRPO with Thyme's reward, sampling plainly

All are made by the programs of ``train/`` and evaluated by ``train.evaluate``, which keep what is complete.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from train.runs.command_line import guarded

MODELS = ("untrained", "unmasked", "masked", "grpo")
DIGITS = r"</?[a-z_]+>|(?<!\d)\d(?=\d{2}(?!\d))|(?<=\D\d)\d(?=\d(?!\d))|(?<=\D\d\d)\d(?!\d)"
"""Tags, and every digit of a number of three digits, are tokens of their own: a coordinate is copied digit by digit."""
SPREAD = 0.1
"""Of the random weights: with Qwen's 0.02 a model this small does not learn to see in the time there is."""
MAX_PIXELS = 4 * 28 * 28
"""An image is four tokens: the fewer there are, the sooner a colour is learned."""
LONGEST_TURN, LONGEST_ROLLOUT, MAX_ROUNDS = 64, 240, 2


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is trained and asked. The defaults are the proof's."""

    seeing_steps: int = 200
    sft_steps: int = 200
    grpo_steps: int = 12
    grpo_batch: int = 48
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
    def closeups(self) -> Path:
        """Rows that teach the colours alone."""
        return self.root / "closeups/datasets/sft/direct"

    @property
    def held_out(self) -> Path:
        """Rows of other walls."""
        return self.root / "held_out/datasets/sft/crop"

    def run(self, name: str) -> Path:
        """Makes a model of ``MODELS``, evaluates it and writes its figures; returns their path."""
        match name:
            case "untrained":
                self.build()
                self.finetune(name, self.closeups, start="random", steps=self.scale.seeing_steps)
            case "grpo":
                self.reinforce()
            case _:
                self.finetune(name, self.rows, start="untrained", steps=self.scale.sft_steps)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(self.evaluated(name), indent=2) + "\n")
        return path

    def build(self) -> None:
        """The random weights."""
        from train import tiny

        tiny.build(
            self.folder / "random",
            seed=self.seed,
            texts=tiny.dataset_texts(self.rows, self.closeups),
            split=DIGITS,
            spread=SPREAD,
        )

    def finetune(self, name: str, rows: Path, *, start: str, steps: int) -> None:
        """SFT with or without masks."""
        from train.finetuning.settings import SftSettings
        from train.sft import finetune

        arguments = SftSettings(
            max_steps=steps,
            batch_size=8,
            learning_rate=3e-3,
            train_observations=name == "unmasked",
            max_pixels=MAX_PIXELS,
            seed=self.seed,
        )
        finetune(rows, self.folder / start, self.folder / name, arguments)

    def reinforce(self, start: str = "masked", name: str = "grpo", rows: Path | None = None, **given: Any) -> Any:
        """GRPO from ``start``; returns its history."""
        from train.grpo import reinforce
        from train.rl.methods import settings_of

        terms = {
            "max_steps": self.scale.grpo_steps,
            "generations": 6,
            "batch_size": self.scale.grpo_batch,
            "learning_rate": 5e-4,
            "schedule": "constant",
            "temperature": 0.5,
            "adaptive_temperature": False,  # else all rollouts of a prompt write one program: nothing to choose between
            "beta": 0.0,
            "repetition_penalty": 1.0,  # a program repeats itself by its nature, and here a line is one token
            "max_rounds": MAX_ROUNDS,
            "max_tokens": LONGEST_ROLLOUT,
            "max_pixels": MAX_PIXELS,
            "seed": self.seed,
        }
        arguments = settings_of("thyme", **terms | given)
        return reinforce(rows or self.rows, self.folder / start, self.folder / name, arguments)

    def evaluated(self, name: str) -> dict[str, Any]:
        """Shares of greedy rollouts on held-out rows; of the last model with the controls."""
        from train.evaluate import evaluate
        from train.evaluation.settings import EvaluationSettings

        settings = EvaluationSettings(
            output=self.folder / f"evaluations/{name}",
            model=str(self.folder / name),
            datasets=(self.held_out,),
            split="all",
            limit=self.scale.n_asked,
            temperature=0.0,
            max_tokens=LONGEST_TURN,
            max_pixels=MAX_PIXELS,
            max_rounds=MAX_ROUNDS,
            batch_size=64,
            seed=self.seed,
            controls=self.scale.n_controls if name == "grpo" else 0,
            shown=4,
            home=self.folder / "home",
        )
        found = evaluate(settings)
        return _shares(found.folder, found.made)


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
    parser.add_argument(
        "models", nargs="+", choices=MODELS, help="in this order; all need `untrained`, `grpo` needs `masked`"
    )
    options = parser.parse_args()
    with guarded():
        for name in options.models:
            print(Course(options.root, options.seed).run(name))


if __name__ == "__main__":
    main()
