"""TRL's own GRPOTrainer plays the rows of `darkroom environment serve` as GRPO does here.

Of TRL nothing but what it samples is scripted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from darkroom.adapters import FOLDER
from darkroom.train.models.loading import load_processor
from darkroom.train.tiny import build
from tests.adapters.programs import run_program, write_scripts
from tests.adapters.rollouts import Played, crashes, grpo, scripts, write_rows

PROGRAM = Path(__file__).with_name("trl_program.py")
MAX_ROUNDS = 2


def test_its_rollouts_are_those_of_grpo_here(tmp_path: Path) -> None:
    rows, model = write_rows(tmp_path / "prompts"), tmp_path / "model"
    build(model, texts=(row.sample.question for row in rows))
    played = scripts(rows)
    asked = write_scripts(tmp_path / "scripts.json", rows, (*played, crashes(rows, times=MAX_ROUNDS + 1)))
    command = (sys.executable, PROGRAM, model, asked)
    *batches, broken = run_program(tmp_path, *command, max_rounds=MAX_ROUNDS, PYTHONPATH=str(FOLDER))
    assert {rollout["reward"] for group in broken.values() for rollout in group} == {None}
    end_of_turn = load_processor(model).tokenizer.eos_token_id
    for script, batch in zip(played, batches, strict=True):
        expected = grpo(tmp_path / "prompts", model, script, max_rounds=MAX_ROUNDS)
        assert set(batch) == set(expected) == {row.sample.sample_id for row in rows}
        for name, rollout in expected.items():
            for actual in batch[name]:
                assert actual["reward"] == pytest.approx(rollout.reward)
                assert actual["images"] == rollout.images
                assert actual["prompt"] == rollout.prompt
                assert (actual["response"], actual["mask"]) == _with_ends(rollout, end_of_turn)


def _with_ends(rollout: Played, end_of_turn: int) -> tuple[list[int], list[int]]:
    """Response and mask where the model ends every turn itself; here a stop string ends those with code."""
    is_open = rollout.response[-1] != end_of_turn
    response, mask = rollout.response + [end_of_turn] * is_open, rollout.mask + [1] * is_open
    tokens = zip(response, mask, [0, *mask], strict=False)
    return response, [int(kept or (token == end_of_turn and after_sampled)) for token, kept, after_sampled in tokens]
