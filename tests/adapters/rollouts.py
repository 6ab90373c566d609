"""Rows of every grader with what a scripted model writes on them, and what Darkroom's own GRPO makes of it."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.publishing.layouts.turns import plain
from darkroom.pipelines.records import RLRow
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.methods import Judges, named_method
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout, ModelInTraining
from darkroom.train.rl.rollouts.environment import PROMPT_GROUPS, SandboxEnvironment
from darkroom.train.rl.rollouts.prompts import open_prompts, prompt
from darkroom.train.rl.rollouts.scoring import scored
from darkroom.train.rl.rollouts.transcript import GeneratedTurn, Transcript
from tests.pipelines.publishing.layouts import rl_rows
from tests.pipelines.publishing.shipping import write_prompts

Script = dict[str, list[str]]
"""The turns of a rollout on each row, by sample_id."""
LOOK = "Image.open(image_path).crop((4, 4, 36, 28)).save('c.png')\nprint('c.png')"
CRASH = "import os\nos._exit(3)"
PRINT = "print('an <image> and', '<|im_' + 'end|>', '<|image_' + 'pad|>')\n1 / 0"


class Played(NamedTuple):
    """A rollout as a trainer has it; ``images`` are the digests of all that the model is shown."""

    prompt: list[int]
    response: list[int]
    mask: list[int]
    images: list[str]
    reward: float
    correct: float


def write_rows(folder: Path) -> list[RLRow]:
    """Writes the prompts of every grader into ``folder``."""
    store = ImageStore(str(folder.parent / "store"))
    noise = (np.random.default_rng(seed).integers(0, 256, (64, 96, 3), np.uint8) for seed in (1, 2))
    one, two = (store.add_pixels(Image.fromarray(pixels)) for pixels in noise)
    rows = rl_rows.rows((one, two))
    write_prompts(folder, rows, store=store, split="train")
    return rows


def scripts(rows: Sequence[RLRow]) -> tuple[Script, Script, Script]:
    """Code and the right answer to every row; code and a wrong one; turns that no protocol reads."""
    first = {
        row.sample.sample_id: Thyme().write_round("I look.", LOOK if row.sample.images else PRINT, first=True)
        for row in rows
    }
    right = {row.sample.sample_id: row.sample.answer for row in rows}
    malformed = "I look. <code>print(1)</code></code>"
    return (
        {name: [turn, Thyme().write_answer("So it is.", right[name], first=False)] for name, turn in first.items()},
        {name: [turn, Thyme().write_answer("No.", rl_rows.WRONG[name], first=False)] for name, turn in first.items()},
        {name: [turn, turn, malformed] for name, turn in first.items()},
    )


def crashes(rows: Sequence[RLRow], *, times: int) -> Script:
    """Code that ends its session, as often: no verdict on a model."""
    turn = Thyme().write_round("I end.", CRASH, first=True)
    return {row.sample.sample_id: [turn] * times for row in rows}


def marker(row: RLRow) -> str:
    """What only the prompt of this row contains."""
    return plain(row.sample.question).partition("\r")[0]


def digest(image: Image.Image) -> str:
    """Of its pixels."""
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


class Scripted:
    """A writer of turns, for the model in training."""

    def __init__(self, script: Script, tokenizer: Any) -> None:
        self._script, self._tokenizer = script, tokenizer

    def end(self) -> None: ...

    async def next_turn(self, player: ActiveRollout, seed: int) -> GeneratedTurn:
        text = self._script[player.task.sample.sample_id][len(player.transcript.turns)]
        is_code = text.endswith(player.protocol.stop)
        ids = self._tokenizer(text).input_ids + ([] if is_code else [self._tokenizer.eos_token_id])
        return GeneratedTurn(ids, text, "code" if is_code else "said")


def grpo(dataset: Path, model: Path, script: Script, *, max_rounds: int, max_tokens: int = 2048) -> dict[str, Played]:
    """The script's rollouts in Darkroom's own loop, rewarded by thyme."""
    processor, rows = load_processor(model), open_prompts(dataset)
    players = [_player(prompt(row, protocol="thyme"), processor, max_rounds) for row in rows]
    policy = ModelInTraining(Scripted(script, processor.tokenizer), processor=processor, max_tokens=max_tokens)
    try:
        rollouts = asyncio.run(policy.run_batch(players))
        outcomes = [player.outcome(rollout) for player, rollout in zip(players, rollouts, strict=True)]
        scores = asyncio.run(scored(outcomes, named_method("thyme"), Judges(), size=1))
    finally:
        for player in players:
            player.environment.reset()
        PROMPT_GROUPS.close()
    return {
        player.task.sample.sample_id: Played(
            player.transcript.prompt,
            player.transcript.ids,
            player.transcript.mask,
            list(map(digest, player.transcript.all_images)),
            reward,
            correct,
        )
        for player, reward, correct in zip(players, scores.rewards, scores.correct, strict=True)
        if reward is not None and correct is not None
    }


def _player(row: Mapping[str, Any], processor: Any, max_rounds: int) -> ActiveRollout:
    environment, sample = SandboxEnvironment(0), row["asked"].sample
    environment.reset(**row)
    text = processor.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)
    ids = processor(text=[text], images=row["images"] or None)["input_ids"][0]
    task = Task(sample.sample_id, "training", sample, sample.images, {}, (), 0)
    return ActiveRollout(environment, task, Transcript(list(ids), list(row["images"])), max_rounds)
