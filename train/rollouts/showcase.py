"""Rollouts to look at: of some steps, a few groups with their programs, pictures, rewards and advantages.

``<folder>/000001.json`` is a list of rollouts; pictures are small copies, once each, in ``<folder>/images``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from pipelines.digest import digest_bytes
from pipelines.records import Round
from train.rollouts.outcomes import Outcome
from train.rollouts.scores import Scores

LONGEST_SIDE = 320
"""Of a small copy, in pixels."""
PER_STEP = 8
"""Rollouts of a step: a group, or the beginning of one."""
EVERY = 10
"""Of the first steps each is shown, then every tenth."""


class Showcase:
    """Writes what one process generates; told every batch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, scores: Scores, state: Any) -> None:
        """``state`` is the trainer's: the step that is being made is its ``global_step`` + 1."""
        step = state.global_step + 1
        if step <= EVERY or step % EVERY == 0:
            self.write(scores, step)

    def write(self, scores: Scores, step: int) -> None:
        """The first rollouts of a batch."""
        columns = (scores.outcomes, scores.broken, scores.rewards, scores.parts, scores.advantages)
        (self._folder / "images").mkdir(parents=True, exist_ok=True)
        shown = [self._rollout(*rollout, step=step) for rollout in list(zip(*columns, strict=True))[:PER_STEP]]
        (self._folder / f"{step:06d}.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False))

    def _rollout(
        self,
        outcome: Outcome,
        broken: str | None,
        reward: float | None,
        parts: Mapping[str, float],
        advantage: float,
        *,
        step: int,
    ) -> dict[str, Any]:
        sample = outcome.asked.sample
        return {
            "step": step,
            "sample_id": sample.sample_id,
            "question": "\n".join([sample.question, *sample.choices]),
            "gold": sample.answer,
            "question_images": self._kept(outcome.question_images),
            "mode": outcome.mode,
            "protocol": outcome.protocol,
            "rounds": [self._round(turn, outcome) for turn in outcome.rollout.rounds],
            "final_thought": outcome.rollout.final_thought,
            "answer": outcome.answer,
            "unanswered": None if outcome.rollout.fault is None else str(outcome.rollout.fault),
            "broken": broken,
            "reward": reward,
            "parts": dict(parts),
            "advantage": advantage,
        }

    def _round(self, turn: Round, outcome: Outcome) -> dict[str, Any]:
        seen = turn.observation
        return {
            "thought": turn.thought,
            "code": turn.code,
            "status": seen.status,
            "text": seen.text,
            "error": seen.error,
            "images": self._kept([outcome.pixels[image.sha256] for image in seen.images]),
        }

    def _kept(self, images: Sequence[Image.Image]) -> list[str]:
        names = []
        for image in images:
            small = image.convert("RGB")
            small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            name = f"{digest_bytes(small.tobytes())[:32]}.png"
            if not (self._folder / "images" / name).exists():
                small.save(self._folder / "images" / name)
            names.append(name)
        return names
