"""Recipes and phases: what is trained on what, in which order, and what a kill leaves behind."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.train.finetuning.settings import (
    Phase,
    SftSettings,
    folders_of,
    read_phases,
    recipe_names,
    recipe_path,
    share_of_batch,
)
from darkroom.train.models.loading import load_model
from darkroom.train.runs import TrainError
from darkroom.train.sft import finetune, main
from tests.train.conftest import sign, sum_without_image

pytestmark = pytest.mark.filterwarnings(
    # PEFT 0.21 reads the name that transformers 5.23 deprecates
    "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
)
TWO = (
    Phase("images", ("crop",), learning_rate=1e-2, max_steps=3),
    Phase("maths", ("math_code",), learning_rate=1e-3, max_steps=3),
)
FAMILIES = (
    *("crop", "rotation", "contrast", "direct", "real_world", "error_correction", "further_enhancement", "math_code"),
    *("agentic_image", "agentic_video", "operation_aware"),
)


@pytest.fixture(scope="module")
def families(tmp_path_factory, store):
    """A folder with a dataset for every family of the recipes; image families have images, math_code none."""
    root = tmp_path_factory.mktemp("families")
    for number, name in enumerate(FAMILIES):
        image = [sign(store, 4 * number + n, n_rounds=n % 2 + 1, loss_policy="last_round") for n in range(4)]
        sums = [sum_without_image(4 * number + n) for n in range(4)]
        write_trajectories(root / name, sums if name == "math_code" else image, store=store)
    return root


def app():
    return program_of(main)


def started(families, model, output, *flags):
    given = ["--dataset", str(families), "--model", str(model), "--output", str(output), *map(str, flags)]
    return CliRunner().invoke(app(), given)


def history(output):
    return json.loads((output / "training.json").read_text())


@pytest.mark.e2e
@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_trains_its_families_in_its_phases(name, families, tinies, tmp_path):
    model = tinies["qwen3_vl" if name == "codev" else "qwen2_5_vl"]
    short = ["--max-steps", 2, "--batch-size", 2, "--save-steps", 0]
    result = started(families, model, tmp_path / "out", "--recipe", name, *short)
    assert result.exit_code == 0, result.output
    made, wanted = history(tmp_path / "out"), yaml.safe_load(recipe_path(name).read_text())
    arguments = made["inputs"]["arguments"]
    assert arguments["recipe"] == name
    assert [phase["name"] for phase in arguments["phases"]] == [phase["name"] for phase in wanted["phases"]]
    for phase, given in zip(arguments["phases"], wanted["phases"], strict=True):
        assert phase["families"] == given["families"]
        assert phase["learning_rate"] == given.get("learning_rate", wanted.get("learning_rate"))
        assert (phase["epochs"], phase["max_steps"]) == (wanted["epochs"], 2)
    assert (arguments["batch_size"], arguments["max_pixels"]) == (2, 2_000_000)
    assert [step["step"] for step in made["steps"]] == list(range(1, 1 + 2 * len(wanted["phases"])))


@pytest.mark.parametrize("name", recipe_names())
def test_the_families_of_a_recipe_are_families_that_there_are(name):
    wanted = yaml.safe_load(recipe_path(name).read_text())
    named = {family for phase in wanted["phases"] for family in phase["families"]}
    assert named <= load_recipes().keys()
    assert named <= set(FAMILIES)


@pytest.mark.parametrize("name", recipe_names())
def test_every_number_of_a_recipe_has_its_source_beside_it(name):
    for line in recipe_path(name).read_text().splitlines():
        key, _, rest = line.strip().lstrip("- ").partition(":")
        if key not in ("phases", "families", "name") and not line.startswith("#"):
            assert "#" in rest, line


def test_the_recipe_of_thyme_is_the_papers():
    given = yaml.safe_load(recipe_path("thyme").read_text())
    assert (given["batch_size"], given["epochs"], given["warmup"]) == (128, 3, 0.05)
    assert [phase["learning_rate"] for phase in given["phases"]] == [1e-5, 1e-6]
    policies = {name: recipe.loss_policy for name, recipe in load_recipes().items()}
    assert [{policies[family] for family in phase["families"]} for phase in given["phases"]] == [
        {"last_round"},
        {"all_rounds"},
    ]


@pytest.fixture(scope="module")
def whole(families, tiny, tmp_path_factory):
    """Two phases without a break."""
    output = tmp_path_factory.mktemp("whole") / "out"
    return output, finetune(families, tiny, output, SftSettings(batch_size=4, phases=TWO))


@pytest.fixture(scope="module", params=[0, 4], ids=["all_weights", "lora"])
def one_phase(request, families, model, tmp_path_factory):
    """The first phase alone, of every model type: its settings, checkpoint and history."""
    arguments, output = SftSettings(batch_size=4, lora=request.param, phases=TWO[:1]), tmp_path_factory.mktemp("one")
    return arguments, output / "out", finetune(families, model, output / "out", arguments)


@pytest.mark.e2e
@pytest.mark.parametrize(("model", "one_phase"), [("qwen2_5_vl", 0)], indirect=True)
def test_the_second_phase_starts_from_the_weights_of_the_first(one_phase, whole, families, tmp_path):
    finetune(families, one_phase[1], tmp_path / "second", SftSettings(batch_size=4, phases=TWO[1:]))
    expected, found = (load_model(folder).state_dict() for folder in (tmp_path / "second", whole[0]))
    assert all(expected[name].equal(found[name]) for name in expected)


@pytest.mark.e2e
def test_steps_are_counted_through_and_say_their_phase(whole):
    steps = whole[1]["steps"]
    assert [(step["step"], step["phase"]) for step in steps] == [
        *((n, "images") for n in (1, 2, 3)),
        *((n, "maths") for n in (4, 5, 6)),
    ]
    assert steps[1]["learning_rate"] == 1e-2
    assert steps[4]["learning_rate"] == 1e-3
    assert whole[1]["inputs"]["arguments"]["phases"][1]["families"] == ["math_code"]


KILLED = """
import os, runpy, signal, sys
from pathlib import Path
from transformers.trainer_callback import CallbackHandler

on_save = CallbackHandler.on_save

def die_in_the_second_phase(handler, arguments, *rest):
    if Path(arguments.output_dir).name == "1-maths":
        os.kill(os.getpid(), signal.SIGKILL)
    return on_save(handler, arguments, *rest)

CallbackHandler.on_save = die_in_the_second_phase
runpy.run_module("darkroom.train.sft", run_name="__main__", alter_sys=True)
"""
"""The program, which gets SIGKILL as soon as it has written a checkpoint of its second phase."""


@pytest.mark.e2e
def test_a_restart_reads_the_weights_of_the_restart_point(one_phase, families, model, tmp_path):
    """Transformers 5.23 alone would go on with those of the base model."""
    arguments, _, unbroken = one_phase
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(families, model, tmp_path / "out", arguments, save_steps=2)
    shutil.rmtree(tmp_path / ".out.part" / "steps" / "0-images" / "checkpoint-3")
    made = finetune(families, model, tmp_path / "out", arguments, save_steps=2)
    assert losses(made) == pytest.approx(losses(unbroken))


def losses(made):
    return [step["loss"] for step in made["steps"]]


def _interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.e2e
def test_a_program_that_is_killed_in_any_phase_goes_on_where_it_was(families, tiny, tmp_path):
    """Stopped in the first phase, killed in the second, whose 20 steps put the kill in its middle."""
    phases = (replace(TWO[0], max_steps=4), replace(TWO[1], max_steps=20))
    arguments = SftSettings(batch_size=2, phases=phases)
    output, part = tmp_path / "out", tmp_path / ".out.part" / "steps"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darkroom.train.runs.reporting.RunReporter.step", _stopped_at_step_4)
        with pytest.raises(KeyboardInterrupt):
            finetune(families, tiny, output, arguments, save_steps=3)
    assert [path.name for path in part.glob("0-images/checkpoint-*")] == ["checkpoint-3"]
    command = [sys.executable, "-c", KILLED, "--dataset", str(families), "--model", str(tiny)]
    command += ["--output", str(output), "--batch-size", "2", "--save-steps", "3", "--phases", _json(phases)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(part.glob("1-maths/checkpoint-*/trainer_state.json"))
    assert not output.exists()
    assert not list(part.glob("0-images/checkpoint-*"))
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darkroom.train.runs.reporting.RunReporter.line", lambda _, text: lines.append(text))
        made = finetune(families, tiny, output, arguments, save_steps=3)
    assert not any("phase 1 of 2" in line for line in lines)
    unbroken = finetune(families, tiny, tmp_path / "unbroken", arguments)
    assert [step["step"] for step in made["steps"]] == list(range(1, 25))
    assert losses(made) == pytest.approx(losses(unbroken))


def _stopped_at_step_4(_, step, *__, **___):
    if step == 4:
        raise KeyboardInterrupt


def _json(phases):
    names = ("name", "families", "learning_rate", "max_steps")
    return json.dumps([{name: getattr(phase, name) for name in names} for phase in phases])


@pytest.mark.e2e
def test_a_second_run_has_nothing_to_do_until_a_dataset_of_a_phase_changes(whole, families, tiny, tmp_path, capsys):
    arguments = SftSettings(batch_size=4, phases=TWO)
    assert finetune(families, tiny, whole[0], arguments) == whole[1]
    two = [families / "crop", families / "math_code"]
    assert finetune(two, tiny, whole[0], arguments) == whole[1]
    assert capsys.readouterr().out.count("nothing to do") == 2


@pytest.mark.e2e
@pytest.mark.parametrize("frozen", [True, False])
def test_a_vision_tower_changes_unless_it_is_frozen(one_phase, families, model, tmp_path, frozen):
    arguments, output, _ = one_phase
    if frozen:
        output = tmp_path / "out"
        finetune(families, model, output, arguments.model_copy(update={"freeze_vision": True}))
    before, after = load_model(model).state_dict(), load_model(output).state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert any("language_model" in name for name in changed)
    assert any("visual" in name for name in changed) != frozen


@pytest.mark.parametrize(
    ("batch_size", "per_device", "processes", "expected"),
    [(128, 1, 8, (1, 16)), (128, 4, 32, (4, 1)), (2, None, 1, (2, 1)), (128, None, 8, (16, 1)), (16, 1, 8, (1, 2))],
)
def test_the_batch_of_a_step_is_shared_among_processes(batch_size, per_device, processes, expected):
    arguments = SftSettings(batch_size=batch_size, per_device=per_device)
    assert share_of_batch(arguments, processes=processes) == expected


@pytest.mark.parametrize(("batch_size", "per_device", "processes"), [(128, 3, 8), (4, 1, 8), (10, None, 4), (2, 4, 1)])
def test_a_batch_that_cannot_be_shared_is_refused_with_the_arithmetic(batch_size, per_device, processes):
    arguments = SftSettings(batch_size=batch_size, per_device=per_device)
    with pytest.raises(
        TrainError, match=rf"a batch of {batch_size} rows is not \d+ per device x {processes} processes"
    ):
        share_of_batch(arguments, processes=processes)


@pytest.mark.e2e
@pytest.mark.parametrize("one_phase", [0], indirect=True)
def test_a_step_is_the_same_however_its_rows_go_through_the_model(one_phase, families, model, tmp_path):
    """The rows have 7 to 28 trained tokens; the loss is the mean over tokens."""
    arguments, _, whole = one_phase
    cut = finetune(families, model, tmp_path / "out", arguments.model_copy(update={"per_device": 1}))
    for name in ("loss", "grad_norm"):
        one_pass, four_passes = ([step[name] for step in made["steps"]] for made in (whole, cut))
        assert four_passes == pytest.approx(one_pass, rel=1e-4)


def test_the_batch_is_shared_among_the_processes_that_were_launched(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert share_of_batch(SftSettings(batch_size=8)) == (2, 1)


def test_a_family_that_is_not_there_is_refused_by_name_or_left_out(families, tiny, tmp_path):
    phase = SftSettings(phases=(Phase("images", ("crop", "morse")),)).planned[0]
    with pytest.raises(TrainError, match=r"phase images trains on crop, morse; there is no morse among agentic_image"):
        folders_of(phase, [families])
    assert folders_of(phase, [families], skip_missing=True) == [families / "crop"]
    none = SftSettings(phases=(Phase("images", ("morse",)),)).planned[0]
    with pytest.raises(TrainError, match="there is no morse"):
        folders_of(none, [families], skip_missing=True)


def test_phases_are_read_from_json_with_numbers_as_yaml_has_them():
    given = '[{"name": "a", "families": ["crop"], "learning_rate": "1e-5"}, {"name": "b"}]'
    assert read_phases(given) == (Phase("a", ("crop",), learning_rate=1e-5), Phase("b"))
    assert read_phases(given, {"max_steps": 3})[1] == Phase("b", max_steps=3)


@pytest.mark.parametrize("given", ["7", '[{"families": []}]', '[{"name": "a", "rate": 1}]', '[{"name": "a"}, 3]', "[{"])
def test_what_is_no_list_of_phases_is_refused(given):
    with pytest.raises(TrainError, match="phases: expected a list of objects with name, families, learning_rate"):
        read_phases(given)


def test_phases_need_names_of_their_own():
    with pytest.raises(TrainError, match="each with a name of its own"):
        SftSettings(phases=(Phase("a"), Phase("a")))


def test_an_unknown_recipe_is_refused_with_those_there_are(families, tiny, tmp_path):
    result = started(families, tiny, tmp_path / "out", "--recipe", "morse")
    assert result.exit_code == 2
    assert "thyme" in result.output


def test_a_file_wins_over_a_recipe_and_the_command_line_over_both(families, tiny, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "batch_size: 2\nwarmup: 0.5\nphases:\n- {name: only, families: [crop], max_steps: 1, learning_rate: 1e-3}\n"
    )
    flags = ["--recipe", "thyme", "--config", tmp_path / "mine.yaml", "--learning-rate", 1e-2]
    for order in (flags, [*flags[2:], *flags[:2]]):
        result = started(families, tiny, tmp_path / "out", *order, "--save-steps", 0, "--per-device", 2)
        assert result.exit_code == 0, result.output
        arguments = history(tmp_path / "out")["inputs"]["arguments"]
        assert (arguments["batch_size"], arguments["warmup"], arguments["epochs"]) == (2, 0.5, 3.0)
        assert [phase["name"] for phase in arguments["phases"]] == ["only"]
        assert arguments["phases"][0]["learning_rate"] == 1e-2


def test_rows_that_do_not_conform_are_left_out_when_that_is_wanted(families, tiny, tmp_path):
    longest = SftSettings(batch_size=2, max_tokens=110, phases=(Phase("images", ("crop",), epochs=1),))
    with pytest.raises(TrainError, match=r"2 of 4 rows cannot be trained on\n  2 x truncated"):
        finetune(families, tiny, tmp_path / "out", longest)
    made = finetune(families, tiny, tmp_path / "out", longest.model_copy(update={"drop_nonconforming": True}))
    assert made["n_steps"] == 1
