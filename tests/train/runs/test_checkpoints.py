import json

import pytest

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
    assert Staging(output, CheckpointInputs("d", "m", {"seed": 1})).last_step() is None


def test_reports_and_hidden_files_do_not_change_a_models_digest(tmp_path):
    (tmp_path / "weights").write_text("a")
    before = folder_digest(tmp_path)
    for name in ("training.json", "loss.png", ".hidden"):
        (tmp_path / name).write_text("b")
    assert folder_digest(tmp_path) == before
    (tmp_path / "weights").write_text("b")
    assert folder_digest(tmp_path) != before
