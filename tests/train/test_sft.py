import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.publishing.dataset_reader import DatasetError
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.train.finetuning.settings import SftSettings
from darkroom.train.models.loading import check_weights
from darkroom.train.runs import TrainError
from darkroom.train.sft import finetune, main

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        # PEFT 0.21 reads the name that transformers 5.23 deprecates
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
    ),
]

FAST = SftSettings(epochs=2, batch_size=1, learning_rate=1e-2)
SHORT = SftSettings(max_steps=2, batch_size=2, learning_rate=1e-2)


def app():
    return program_of(main)


@pytest.fixture(scope="module")
def trained(signs, tiny_signs, tmp_path_factory):
    output = tmp_path_factory.mktemp("sft") / "checkpoint"
    return output, finetune(signs, tiny_signs, output, FAST)


def test_the_loss_falls_in_every_epoch(trained):
    steps = trained[1]["steps"]
    first = [step["loss"] for step in steps if step["epoch"] <= 1]
    second = [step["loss"] for step in steps if step["epoch"] > 1]
    assert len(first) == len(second) == 24
    assert first[0] > 5 > first[-1] > second[-1]
    assert second[-1] < 1


def test_the_checkpoint_is_complete_and_alone(trained):
    output = trained[0]
    names = {path.name for path in output.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "training.json", "loss.png"} <= names
    assert "training_args.bin" not in names
    assert [path.name for path in output.parent.iterdir() if path.name != ".conformance"] == [output.name]
    assert (output / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_the_history_says_what_was_trained_from_what(trained, signs, tiny_signs):
    made = json.loads((trained[0] / "training.json").read_text())
    assert made == trained[1]
    assert made["program"] == "sft"
    assert made["n_steps"] == len(made["steps"]) == 48
    assert made["seconds"] > 0
    assert made["inputs"]["dataset"]["folder"] == str(signs)
    assert made["inputs"]["model"]["folder"] == str(tiny_signs)
    assert len(made["inputs"]["digest"]) == len(made["inputs"]["dataset"]["digest"]) == 64
    assert made["inputs"]["arguments"]["learning_rate"] == 1e-2
    assert {"torch", "trl", "transformers"} <= made["versions"].keys()
    assert {"step", "epoch", "loss", "learning_rate", "grad_norm"} <= made["steps"][0].keys()


def test_the_checkpoint_keeps_the_template_that_the_model_came_with(trained, tiny_signs):
    assert (trained[0] / "chat_template.jinja").read_text() == (tiny_signs / "chat_template.jinja").read_text()


def test_the_trained_model_writes_the_program(trained, signs):
    import torch

    from darkroom.train.examples.datasets import open_dataset
    from darkroom.train.examples.encoding import conversation
    from darkroom.train.models.loading import load_model, load_processor

    processor, model = load_processor(trained[0]), load_model(trained[0]).eval()
    row = open_dataset(signs)[0]
    said = conversation(row, layout="turns")
    said[1]["content"][0]["image"] = row["images"][0]
    inputs = processor.apply_chat_template(
        said[:2], tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True
    )
    with torch.no_grad():
        tokens = model.generate(**inputs, max_new_tokens=60, do_sample=False)
    text = processor.tokenizer.decode(tokens[0, inputs["input_ids"].shape[1] :])
    assert text == said[2]["content"][0]["text"] + "<|im_end|>"


def test_a_second_run_with_the_same_inputs_has_nothing_to_do(trained, signs, tiny_signs, capsys):
    output, made = trained
    before = (output / "training.json").stat().st_mtime_ns
    assert finetune(signs, tiny_signs, output, FAST) == made
    assert "nothing to do (--force trains again)" in capsys.readouterr().out
    assert (output / "training.json").stat().st_mtime_ns == before


def test_other_arguments_and_force_train_again(dataset, tiny, tmp_path):
    first = finetune(dataset, tiny, tmp_path / "out", SHORT)
    other = finetune(dataset, tiny, tmp_path / "out", SftSettings(max_steps=1, batch_size=2, layout="inline"))
    assert (first["n_steps"], other["n_steps"]) == (2, 1)
    assert first["inputs"]["digest"] != other["inputs"]["digest"]
    before = (tmp_path / "out" / "training.json").stat().st_mtime_ns
    again = finetune(
        dataset, tiny, tmp_path / "out", SftSettings(max_steps=1, batch_size=2, layout="inline"), force=True
    )
    assert (tmp_path / "out" / "training.json").stat().st_mtime_ns != before
    assert again["steps"][0]["loss"] == other["steps"][0]["loss"]


def test_a_restart_goes_on_from_the_last_saved_step(dataset, tiny, tmp_path, monkeypatch, capsys):
    output, arguments = tmp_path / "out", SftSettings(max_steps=4, batch_size=2)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            finetune(dataset, tiny, output, arguments, save_steps=3)
    assert not output.exists()
    shutil.rmtree(tmp_path / ".out.part" / "steps" / "0-all" / "checkpoint-4", ignore_errors=True)
    capsys.readouterr()
    made = finetune(dataset, tiny, output, arguments, save_steps=3)
    assert [step["step"] for step in made["steps"]] == [1, 2, 3, 4]
    assert [line[:8] for line in capsys.readouterr().out.splitlines() if line.startswith("step")] == ["step 4/4"]
    assert [path.name for path in tmp_path.iterdir() if path.name != ".conformance"] == ["out"]


@pytest.fixture
def interrupted(dataset, tiny, tmp_path):
    """The settings of a training that was interrupted after its last step, the third of an epoch's four."""
    arguments = SftSettings(max_steps=3, batch_size=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(dataset, tiny, tmp_path / "out", arguments, save_steps=3)
    return arguments


def _interrupted(*_, **__):
    raise KeyboardInterrupt


def steps_of(capsys):
    return [line.split(",")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("step")]


def test_a_training_that_had_only_to_be_saved_trains_no_further_step(interrupted, dataset, tiny, tmp_path, capsys):
    capsys.readouterr()
    made = finetune(dataset, tiny, tmp_path / "out", interrupted)
    assert steps_of(capsys) == []
    assert [step["step"] for step in made["steps"]] == [1, 2, 3]
    unbroken = finetune(dataset, tiny, tmp_path / "unbroken", interrupted)
    assert [step["loss"] for step in made["steps"]] == [step["loss"] for step in unbroken["steps"]]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "unbroken")]
    assert weights[0] == weights[1]


def test_a_training_resumes_with_more_steps_other_saving_another_name_and_share(
    interrupted, dataset, tiny, tmp_path, capsys
):
    changed = SftSettings(max_steps=5, batch_size=2, per_device=1, trainer={"run_name": "again"})
    capsys.readouterr()
    made = finetune(dataset, tiny, tmp_path / "out", changed, save_steps=1)
    assert steps_of(capsys) == ["step 4/5", "step 5/5"]
    assert [step["step"] for step in made["steps"]] == [1, 2, 3, 4, 5]
    assert made["resumed_with"][0]["max_steps"] == [3, 5]
    assert made["resumed_with"][0]["trainer.run_name"] == [None, "again"]
    assert made["inputs"]["arguments"]["max_steps"] == 5


def test_a_training_with_another_change_is_refused_until_it_is_begun_anew(interrupted, dataset, tiny, tmp_path, capsys):
    changed = SftSettings(max_steps=3, batch_size=2, learning_rate=1e-3)
    with pytest.raises(
        TrainError, match=r"\.out\.part has a restart point .*learning_rate: 1e-05, now 0\.001.*--restart"
    ):
        finetune(dataset, tiny, tmp_path / "out", changed)
    assert list((tmp_path / ".out.part").rglob("checkpoint-3"))
    fewer = SftSettings(max_steps=2, batch_size=2)
    with pytest.raises(
        TrainError, match=r"a restart point after step 3, and the training is to have 2 steps: .*--restart"
    ):
        finetune(dataset, tiny, tmp_path / "out", fewer)
    capsys.readouterr()
    made = finetune(dataset, tiny, tmp_path / "out", changed, restart=True)
    assert steps_of(capsys) == ["step 1/3", "step 2/3", "step 3/3"]
    assert "resumed_with" not in made


def test_lora_weights_are_merged_into_the_checkpoint(dataset, tiny, tmp_path):
    from darkroom.train.models.loading import load_model

    finetune(dataset, tiny, tmp_path / "out", SftSettings(max_steps=2, batch_size=2, learning_rate=1e-2, lora=4))
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    before, after = load_model(tiny).state_dict(), load_model(tmp_path / "out").state_dict()
    assert before.keys() == after.keys()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert any("q_proj" in name for name in changed)
    assert not any("norm" in name or "embed_tokens" in name for name in changed)


def test_a_missing_dataset_is_refused(tiny, tmp_path):
    with pytest.raises(TrainError, match=r"no dataset folder .*\. Run: darkroom materialize SOURCE"):
        finetune(tmp_path / "none", tiny, tmp_path / "out", SHORT)


def test_a_missing_model_is_refused(dataset, tmp_path):
    with pytest.raises(TrainError, match=r"no model in .*hf download"):
        finetune(dataset, tmp_path / "none", tmp_path / "out", SHORT)


def test_a_model_of_another_family_is_refused(dataset, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    said = "holds a 'llama' model; supported are qwen2_vl, .*qwen3_vl_moe: train another elsewhere, .*--url"
    with pytest.raises(TrainError, match=said) as raised:
        finetune(dataset, tmp_path, tmp_path / "out", SHORT)
    assert "\n" not in str(raised.value)


def test_a_mixture_of_experts_is_trained_and_read_again(signs, tinies, tmp_path):
    found = finetune(signs, tinies["qwen3_vl_moe"], tmp_path / "out", SHORT)
    assert found["n_steps"] == 2
    saved, before = (load_file(path / "model.safetensors") for path in (tmp_path / "out", tinies["qwen3_vl_moe"]))
    experts = [name for name in saved if "experts" in name and not saved[name].equal(before[name])]
    assert experts
    check_weights(tmp_path / "out")


def test_other_columns_are_refused_by_name(tiny, tmp_path):
    pq.write_table(pa.table({"question": ["a"], "extra": ["b"]}), tmp_path / "train.parquet")
    with pytest.raises(DatasetError, match=r"missing \['answer', .*unknown \['extra'\]"):
        finetune(tmp_path, tiny, tmp_path / "out", SHORT)


def test_an_empty_dataset_is_refused(tiny, store, tmp_path):
    write_trajectories(tmp_path / "empty", [], store=store)
    with pytest.raises(TrainError, match="has no rows: every trajectory was rejected"):
        finetune(tmp_path / "empty", tiny, tmp_path / "out", SHORT)


def test_a_row_that_does_not_conform_stops_the_program_before_the_first_step(dataset, tiny, tmp_path):
    table = pq.read_table(next(dataset.glob("*.parquet")))
    images = table["images"].to_pylist()
    images[3] = images[3][:1]
    column = pa.array(images, type=table.schema.field("images").type)
    (tmp_path / "bad").mkdir()
    at = table.schema.get_field_index("images")
    pq.write_table(table.set_column(at, table.schema.field(at), column), tmp_path / "bad" / "train.parquet")
    with pytest.raises(TrainError, match=r"row t3 \(crop, images_differ\): it holds 1 images and shows 2"):
        finetune(tmp_path / "bad", tiny, tmp_path / "out", SHORT)
    assert not (tmp_path / "out").exists()


def test_the_program_ends_with_a_message_and_status_1(tiny, tmp_path):
    flags = ["--dataset", str(tmp_path / "none"), "--model", str(tiny), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app(), flags)
    assert result.exit_code == 1
    assert result.output.startswith(
        f"error: no dataset folder {tmp_path}/none. Run: darkroom materialize SOURCE, or name the folder"
    )


def test_figures_go_to_a_tracker_and_what_is_trained_stays_the_same(dataset, tiny, tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("DARKROOM_REPORT_TO", "none")  # both are put back after the test
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "figures"))
    flags = ["--dataset", str(dataset), "--model", str(tiny), "--output", str(tmp_path / "out"), "--max-steps", "2"]
    result = CliRunner().invoke(app(), [*flags, "--report-to", "tensorboard"])
    assert result.exit_code == 0, result.output
    figures = EventAccumulator(str(tmp_path / "figures")).Reload()
    assert [event.step for event in figures.Scalars("train/loss")] == [1, 2]
    assert "nothing to do" in CliRunner().invoke(app(), [*flags, "--report-to", "none"]).output
    (tmp_path / "options.yaml").write_text("report_to: excel\n")
    monkeypatch.delenv("DARKROOM_REPORT_TO")  # the environment is stronger than a file
    refused = CliRunner().invoke(app(), [*flags, "--config", str(tmp_path / "options.yaml")])
    assert refused.output.startswith("error: --report-to excel: there are trackio")


def test_flags_win_over_the_recipe_file(dataset, tiny, tmp_path):
    (tmp_path / "recipe.yaml").write_text("learning_rate: 0.02\nmax-steps: 5\nbatch_size: 2\n")
    flags = ["--dataset", str(dataset), "--model", str(tiny), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app(), [*flags, "--config", str(tmp_path / "recipe.yaml"), "--max-steps", "1"])
    assert result.exit_code == 0, result.output
    arguments = json.loads((tmp_path / "out" / "training.json").read_text())["inputs"]["arguments"]
    assert (arguments["learning_rate"], arguments["max_steps"], arguments["batch_size"]) == (0.02, 1, 2)


def test_an_unknown_key_of_a_recipe_file_is_refused(dataset, tiny, tmp_path):
    (tmp_path / "recipe.yaml").write_text("learnign_rate: 0.02\n")
    flags = ["--dataset", str(dataset), "--model", str(tiny), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app(), [*flags, "--config", str(tmp_path / "recipe.yaml")])
    assert result.exit_code == 2
    assert "learnign_rate" in result.output
