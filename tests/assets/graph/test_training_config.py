"""What is launched: command lines as data, from the launchpad's settings."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from darkroom.assets.clusters.programs import Program
from darkroom.assets.graph.training_config import (
    DEMO_SETTINGS,
    BaseModelConfig,
    EvaluationConfig,
    GrpoConfig,
    SftConfig,
    evaluation_program,
    grpo_program,
    sft_program,
    tiny_program,
)

pytestmark = pytest.mark.e2e
OUTPUT, DATA, MODEL = Path("/data/out"), Path("/data/rows"), Path("/data/model")


def flags(program: Program) -> dict[str, list[str]]:
    """Values by flag."""
    found: dict[str, list[str]] = {}
    for word in program.arguments:
        if word.startswith("--"):
            name = word
            found.setdefault(name, [])
        else:
            found[name].append(word)
    return found


def test_flags_are_written_as_a_person_would() -> None:
    given = {
        "max_steps": 3,
        "lora": 0,
        "resume": True,
        "force": False,
        "judge": "",
        "rate": None,
        "dataset": ["a", "b"],
    }
    program = Program.of("train.x", given | {"output": OUTPUT})
    assert program.arguments == (
        *("--max-steps", "3", "--lora", "0", "--resume", "--dataset", "a", "--dataset", "b"),
        *("--output", "/data/out"),
    )


def test_one_process_is_a_module_and_several_are_launched_by_accelerate() -> None:
    program = Program.of("darkroom.train.sft", {"seed": 1, "output": OUTPUT})
    assert program.command() == [sys.executable, "-m", "darkroom.train.sft", "--seed", "1", "--output", "/data/out"]
    several = program.command(n_processes=4)
    assert several[:5] == [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "4"]
    assert several[several.index("--module") + 1 :] == ["darkroom.train.sft", "--seed", "1", "--output", "/data/out"]


@pytest.mark.parametrize("tiny", [True, False])
@pytest.mark.parametrize(
    "program",
    [
        lambda tiny: sft_program([DATA], MODEL, OUTPUT, SftConfig(max_pixels=1000, lora=8), tiny=tiny),
        lambda tiny: grpo_program(DATA, MODEL, OUTPUT, GrpoConfig(save_steps=5), tiny=tiny),
        lambda tiny: evaluation_program([DATA], MODEL, OUTPUT, EvaluationConfig(benchmarks={"a": "/b"}), tiny=tiny),
    ],
    ids=["sft", "grpo", "evaluate"],
)
def test_every_flag_is_one_of_the_program(program: Any, tiny: bool) -> None:
    built = program(tiny)
    known = set(inspect.signature(import_module(built.module).main).parameters)
    assert {name.removeprefix("--").replace("-", "_") for name in flags(built)} <= known


def test_what_is_not_set_is_left_to_the_program_but_for_the_tiny_model() -> None:
    assert "--learning-rate" not in flags(sft_program([DATA], MODEL, OUTPUT, SftConfig(), tiny=False))
    assert flags(sft_program([DATA], MODEL, OUTPUT, SftConfig(), tiny=True))["--learning-rate"] == ["0.008"]
    assert flags(sft_program([DATA], MODEL, OUTPUT, SftConfig(learning_rate=1e-5), tiny=True))["--learning-rate"] == [
        "1e-05"
    ]


def test_a_recipe_is_not_overridden_by_what_was_left_alone() -> None:
    found = flags(sft_program([DATA], MODEL, OUTPUT, SftConfig(recipe="thyme"), tiny=True))
    assert set(found) == {"--dataset", "--model", "--recipe", "--output"}


def test_any_other_flag_can_be_given_by_name() -> None:
    found = flags(grpo_program(DATA, MODEL, OUTPUT, GrpoConfig(flags={"beta": "0.01", "ats": "true"}), tiny=False))
    assert (found["--beta"], found["--ats"]) == (["0.01"], [])


def test_the_demos_settings_stand_over_those_of_the_tiny_model() -> None:
    base, sft = BaseModelConfig(**DEMO_SETTINGS["base_model"]), SftConfig(**DEMO_SETTINGS["sft_checkpoint"])
    grpo, asked = GrpoConfig(**DEMO_SETTINGS["grpo_checkpoint"]), EvaluationConfig(**DEMO_SETTINGS["evaluation"])
    built = tiny_program(OUTPUT, [DATA], base)
    assert built.arguments[0] == str(OUTPUT)
    assert built.arguments[1:] == ("--dataset", str(DATA), "--seed", "0", "--digits", "--spread", "0.1")
    assert flags(sft_program([DATA], MODEL, OUTPUT, sft, tiny=True))["--max-steps"] == ["300"]
    rollouts = flags(grpo_program(DATA, MODEL, OUTPUT, grpo, tiny=True))
    assert (rollouts["--max-steps"], rollouts["--no-ats"]) == (["3"], [])
    assert flags(evaluation_program([DATA], MODEL, OUTPUT, asked, tiny=True))["--limit"] == ["48"]


def test_fields_of_a_method_are_set_on_the_launchpad() -> None:
    config = GrpoConfig(method="codev", method_fields={"weight_tool": "0.3", "weight_accuracy": "0.9"})
    found = flags(grpo_program(DATA, MODEL, OUTPUT, config, tiny=False))
    assert found["--set"] == ["method.weight_tool=0.3", "method.weight_accuracy=0.9"]
    assert "--set" not in flags(grpo_program(DATA, MODEL, OUTPUT, GrpoConfig(), tiny=False))


@pytest.mark.parametrize(
    ("program", "config"),
    [(partial(sft_program, [DATA]), SftConfig), (partial(grpo_program, DATA), GrpoConfig)],
    ids=["sft", "grpo"],
)
def test_evaluations_during_training_are_set_on_the_launchpad(program: Any, config: Any) -> None:
    asked = config(eval_every=5, early_stop=2, keep_best=True, flags={"eval_limit": "9"})
    found = flags(program(MODEL, OUTPUT, asked, tiny=False))
    assert [found[name] for name in ("--eval-every", "--early-stop", "--keep-best")] == [["5"], ["2"], []]
    assert found["--eval-limit"] == ["9"]
    assert (
        not {"--eval-every", "--early-stop", "--keep-best"} & flags(program(MODEL, OUTPUT, config(), tiny=False)).keys()
    )
