"""ms-swift's own rollout loops and encoding play exported rows through `darkroom environment serve`, as GRPO does here.

Its engine (vLLM) is scripted, and its trainer is not run: multi-turn training there wants vLLM.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.pipelines.publishing.layouts import PROMPT_LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.layouts.turns import escaped, plain
from darkroom.train.tiny import build
from tests.adapters.conftest import Install
from tests.adapters.programs import run_program, write_scripts
from tests.adapters.rollouts import crashes, grpo, scripts, write_rows

VERSION = "4.6.0"
UNDECLARED = ("msgspec", "httpx")
"""What ms-swift and the adapter import and ms-swift does not require."""
PROGRAM = Path(__file__).with_name("ms_swift_program.py")


def test_its_rollouts_are_those_of_grpo_here(install: Install, tmp_path: Path) -> None:
    rows, model = write_rows(tmp_path / "prompts"), tmp_path / "model"
    build(model, texts=(row.sample.question for row in rows))
    source = find_source("rl", tmp_path, split="train", prompts=tmp_path / "prompts").in_protocol("thyme", None)
    folder = export(source, PROMPT_LAYOUTS["ms_swift_grpo"], tmp_path / "out").folder
    played = scripts(rows)
    asked = write_scripts(tmp_path / "scripts.json", rows, (*played, crashes(rows, times=1)))
    python = install(f"ms-swift-{VERSION}", f"ms-swift=={VERSION}", *UNDECLARED)
    *batches, broken, again = run_program(
        tmp_path, python, PROGRAM, folder / "darkroom_ms_swift.py", folder, model, asked
    )
    for rollout in (*broken.values(), *again.values()):
        assert (rollout["reward"], bool(rollout["broken"])) == (0.0, True)
    unchanged = {row.sample.sample_id for row in rows if escaped(row.sample.question) == plain(row.sample.question)}
    for number, script in enumerate(played):
        expected = grpo(tmp_path / "prompts", model, script, max_rounds=2)
        for batch in batches[2 * number : 2 * number + 2]:  # in its server, in its trainer's own process
            assert set(batch) == set(expected) == {row.sample.sample_id for row in rows}
            for name, rollout in expected.items():
                actual = batch[name]
                assert actual["reward"] == pytest.approx(rollout.reward)
                assert actual["correct"] == rollout.correct
                assert actual["images"] == actual["engine_images"] == rollout.images
                assert actual["n_features"] == len(rollout.images)
                assert (actual["prompt"] == rollout.prompt) == (name in unchanged)
                assert actual["response"] == rollout.response
                assert actual["mask"] == _without_last(rollout.mask)
                assert actual["n_logprobs"] == sum(actual["mask"])


def _without_last(mask: list[int]) -> list[int]:
    """The mask without the last token of each turn that an observation follows."""
    return [kept and following for kept, following in zip(mask, [*mask[1:], 1], strict=True)]
