import json
import shutil

import pytest

from darkroom.train.runs import TrainError
from darkroom.train.runs.checkpoints import CheckpointInputs, Staging, finished, folder_digest

INPUTS = CheckpointInputs("d", "m", {"seed": 0})


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out"


def publish(output, inputs, text):
    staging = Staging(output, inputs)
    (staging.final / "weights").write_text(text)
    (staging.final / "training.json").write_text(json.dumps({"inputs": {"digest": inputs.digest}}))
    staging.publish()


def test_a_published_checkpoint_is_known_by_its_inputs(output):
    assert finished(output, INPUTS) is None
    publish(output, INPUTS, "a")
    assert finished(output, INPUTS) is not None
    assert finished(output, CheckpointInputs("d", "other", {"seed": 0})) is None
    assert finished(output, CheckpointInputs("d", "m", {"seed": 1})) is None


def test_an_output_is_replaced_whole(output):
    publish(output, INPUTS, "a")
    (output / "left_over").touch()
    publish(output, INPUTS, "b")
    assert sorted(path.name for path in output.iterdir()) == ["training.json", "weights"]
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def test_an_unfinished_attempt_leaves_the_output_alone(output):
    publish(output, INPUTS, "a")
    (Staging(output, INPUTS).final / "weights").write_text("b")
    assert (output / "weights").read_text() == "a"


def saved_step(staging, number, *, complete=True):
    """With what the trainer writes last, or with the beginning of it."""
    folder = staging.steps / f"checkpoint-{number}"
    folder.mkdir(parents=True)
    if not complete:
        (folder / "trainer_state.json").write_text('{"epoch": ')
    else:
        (folder / "trainer_state.json").write_text("{}")


def test_the_newest_complete_step_of_an_attempt_with_the_same_inputs_is_found(output):
    for number, complete in ((9, True), (10, True), (11, False)):
        saved_step(Staging(output, INPUTS), number, complete=complete)
    assert Staging(output, INPUTS).last_step().endswith("checkpoint-10")


@pytest.fixture
def interrupted(output):
    """A function that interrupts a training with these arguments after its tenth step."""

    def begun(**arguments):
        saved_step(Staging(output, CheckpointInputs("d", "m", arguments)), 10)

    return begun


def resumed(output, *, dataset="d", restart=False, **arguments):
    return Staging(output, CheckpointInputs(dataset, "m", arguments), restart=restart)


GRPO = {"learning_rate": 1e-6, "batch_size": 8, "accumulation": 1, "judge": "a", "eval_every": 5, "max_steps": 20}


@pytest.mark.parametrize(
    "changed",
    [
        {"max_steps": 40},
        {"epochs": 2.0},
        {"trainer": {"run_name": "again", "save_total_limit": 5}},
        {"eval_every": 2, "early_stop": 3},
        {"eval_limit": 100},
        {"batch_size": 4, "accumulation": 2},
    ],
    ids=str,
)
def test_what_people_change_after_a_crash_resumes_and_is_recorded(output, interrupted, changed):
    interrupted(**GRPO)
    staging = resumed(output, **GRPO | changed)
    assert staging.last_step().endswith("checkpoint-10")
    (changes,) = staging.changes
    flat = {f"trainer.{name}": value for name, value in changed.get("trainer", {}).items()} or changed
    assert changes == {name: [GRPO.get(name), value] for name, value in flat.items()}
    assert resumed(output, **GRPO | changed).changes == [changes]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"judge": "b"}, "judge: 'a', now 'b'"),
        ({"learning_rate": 1e-5}, "learning_rate: 1e-06, now 1e-05"),
        ({"trainer": {"epsilon_high": 0.28}}, "trainer.epsilon_high: None, now 0.28"),
        ({"batch_size": 4}, "batch_size: 8, now 4"),
        ({"eval_limit": 100, "keep_best": True}, "eval_limit: None, now 100"),
        ({"dataset": "other"}, "dataset: 'd', now 'other'"),
    ],
    ids=str,
)
def test_any_other_change_is_refused_in_a_line_that_names_the_folder_and_deletes_nothing(
    output, interrupted, changed, named
):
    interrupted(**GRPO)
    with pytest.raises(TrainError) as raised:
        resumed(output, **GRPO | changed)
    words = str(raised.value)
    assert str(output.with_name(".out.part")) in words
    assert named in words
    assert words.endswith("begin anew with --restart")
    assert "\n" not in words
    assert resumed(output, **GRPO).last_step().endswith("checkpoint-10")


def test_a_restart_begins_anew_with_the_same_settings_or_others(output, interrupted):
    for changed in ({}, {"judge": "b"}):
        interrupted(**GRPO)
        staging = resumed(output, **GRPO | changed, restart=True)
        assert (staging.last_step(), staging.changes) == (None, [])
        shutil.rmtree(staging.folder)


def test_processes_resume_with_as_many_rows_in_a_step(output, interrupted, monkeypatch):
    interrupted(**GRPO)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainError, match="accumulation: 1, now 2"):
        resumed(output, **GRPO | {"accumulation": 2})
    assert resumed(output, **GRPO | {"batch_size": 4}).changes == [{"batch_size": [8, 4], "processes": [1, 2]}]


def phases(*lengths, rate=1e-5):
    return [{"name": f"p{n}", "learning_rate": rate, "max_steps": length} for n, length in enumerate(lengths)]


def test_phases_may_be_longer_unless_they_are_finished(output, interrupted):
    interrupted(phases=phases(4, 4))
    (output.with_name(".out.part") / "steps" / "0-p0").mkdir()
    (output.with_name(".out.part") / "steps" / "0-p0" / "done.json").write_text("[]")
    for wrong in (phases(8, 8), phases(4, 4, rate=1e-4), phases(4)):
        with pytest.raises(TrainError, match="phases: "):
            resumed(output, phases=wrong)
    assert resumed(output, phases=phases(4, 8)).last_step() is not None


def test_an_interrupted_training_of_an_earlier_version_resumes_with_the_same_inputs_alone(output, interrupted):
    interrupted(**GRPO)
    (output.with_name(".out.part") / "inputs.json").unlink()
    with pytest.raises(TrainError, match="an earlier version of Darkroom began it"):
        resumed(output, **GRPO | {"max_steps": 40})
    assert resumed(output, **GRPO).last_step() is not None


def test_an_attempt_without_a_restart_point_is_replaced(output):
    (Staging(output, INPUTS).steps / "checkpoint-3").mkdir(parents=True)
    assert resumed(output, seed=1).changes == []


def test_reports_and_hidden_files_do_not_change_a_models_digest(tmp_path):
    (tmp_path / "weights").write_text("a")
    before = folder_digest(tmp_path)
    for name in ("training.json", "loss.png", ".hidden"):
        (tmp_path / name).write_text("b")
    assert folder_digest(tmp_path) == before
    (tmp_path / "weights").write_text("b")
    assert folder_digest(tmp_path) != before
