"""Sample rollouts of some steps: a few groups with code, images, rewards and advantages.

``<folder>/000001.json`` is a list of rollouts; images are small copies, once each, in ``<folder>/images``.
``log_traces`` sends the same rollouts to trackio, whose page Traces shows them as conversations.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.pipelines.records import Round
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.train.rl.methods.base import RolloutOutcome
from darkroom.train.rl.rollouts.scoring import Scores

LONGEST_SIDE = 320
"""Pixels of a small copy."""
PER_STEP = 8
"""Rollouts of a step: a group, or the beginning of one."""
MOST_WRITTEN = 50_000
"""Characters that are kept of a rollout without an answer: malformed turns are seen nowhere else."""
EVERY = 10
"""The first steps are all logged, then every tenth."""
Tracker = Callable[[Sequence[Mapping[str, Any]], Path, int], None]
"""Receives a batch's rollouts as they are written, the folder of their images, and the number of earlier steps."""


@dataclass(frozen=True, slots=True)
class SampleLog:
    """Writer of samples of one process's batches; ``trackers`` get them, too."""

    folder: Path
    trackers: Sequence[Tracker] = ()

    def __call__(self, scores: Scores, state: Any) -> None:
        """Write the first rollouts of a batch; ``state`` is the trainer's, whose ``global_step`` + 1 is being made."""
        step = state.global_step + 1
        if step > EVERY and step % EVERY:
            return
        columns = (scores.outcomes, scores.broken, scores.rewards, map(dict, scores.parts), scores.advantages)
        names = ("broken", "reward", "parts", "advantage")
        (self.folder / "images").mkdir(parents=True, exist_ok=True)
        rollouts = [
            {"step": step, **self._rollout(outcome), **dict(zip(names, score, strict=True))}
            for outcome, *score in list(zip(*columns, strict=True))[:PER_STEP]
        ]
        (self.folder / f"{step:06d}.json").write_text(json.dumps(rollouts, indent=1, ensure_ascii=False))
        for track in self.trackers:
            track(rollouts, self.folder / "images", state.global_step)

    def _rollout(self, outcome: RolloutOutcome) -> dict[str, Any]:
        sample, error = outcome.question.sample, outcome.rollout.error
        return {
            "sample_id": sample.sample_id,
            "question": "\n".join([sample.question, *sample.choices]),
            "gold": sample.answer,
            "question_images": self._kept(outcome.question_images),
            "mode": outcome.mode,
            "protocol": outcome.protocol,
            "rounds": [self._round(turn, outcome) for turn in outcome.rollout.rounds],
            "final_thought": outcome.rollout.final_thought,
            "answer": outcome.answer,
            "unanswered": None if error is None else str(error),
            "written": None if error is None else outcome.text[:MOST_WRITTEN],
        }

    def _round(self, turn: Round, outcome: RolloutOutcome) -> dict[str, Any]:
        observation = turn.observation
        return {
            "thought": turn.thought,
            "code": turn.code,
            **{name: getattr(observation, name) for name in ("status", "text", "error")},
            "images": self._kept([outcome.pixels[image.sha256] for image in observation.images]),
        }

    def _kept(self, images: Sequence[Image.Image]) -> list[str]:
        names = []
        for image in images:
            small = image.convert("RGB")
            small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            name = f"{digest_bytes(small.tobytes())[:32]}.png"
            if not (self.folder / "images" / name).exists():
                small.save(self.folder / "images" / name)
            names.append(name)
        return names


KEY = "rollouts"
"""The key of TRL's own traces, too."""
_METADATA = ("sample_id", "mode", "gold", "answer", "reward", "parts", "advantage", "broken", "unanswered")


def log_traces(rollouts: Sequence[Mapping[str, Any]], images: Path, step: int) -> None:
    """Log sample rollouts in the run that the trainer has begun; trackio warns of what it cannot show."""
    import trackio  # installed only where a training reports to it

    traces = [
        trackio.Trace(list(_messages(rollout, images)), {name: rollout[name] for name in _METADATA})
        for rollout in rollouts
    ]
    trackio.log({KEY: traces}, step=step)


def _messages(rollout: Mapping[str, Any], images: Path) -> Iterator[dict[str, Any]]:
    """Messages in OpenAI's form, images as trackio's: code is a call of ``run_python``, its observation the result."""
    yield {"role": "user", "content": _content(rollout["question"], rollout["question_images"], images)}
    for number, turn in enumerate(rollout["rounds"], 1):
        calls = [{"id": str(number), "type": "function", "function": {"name": "run_python", "arguments": turn["code"]}}]
        yield {"role": "assistant", "content": turn["thought"], "tool_calls": calls}
        text = "\n".join(filter(None, (turn["text"], turn["error"]))) or turn["status"]
        yield {"role": "tool", "tool_call_id": str(number), "content": _content(text, turn["images"], images)}
    texts = (rollout["final_thought"], rollout["answer"]) if rollout["unanswered"] is None else (rollout["written"],)
    yield {"role": "assistant", "content": "\n\n".join(filter(None, texts))}


def _content(text: str, names: Sequence[str], images: Path) -> list[Any]:
    import trackio

    return [*(trackio.Image(images / name) for name in names), {"type": "text", "text": text}]
