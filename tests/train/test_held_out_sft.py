"""SFT that is evaluated on held-out rows: when, what it stops, and which weights it leaves."""

import os
import signal
from pathlib import Path

import pytest

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.train.finetuning.settings import SftSettings
from darkroom.train.models.loading import load_model
from darkroom.train.runs import TrainError
from darkroom.train.sft import finetune
from tests.train.conftest import sign

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings(
        # PEFT 0.21 reads the name that transformers 5.23 deprecates
        "ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"
    ),
]
SHORT = SftSettings(max_steps=7, batch_size=2, learning_rate=1e-2)


@pytest.fixture(scope="module")
def split(store, tmp_path_factory):
    """Eight rows to train on and five that are held out."""
    folder = tmp_path_factory.mktemp("dataset") / "split"
    write_trajectories(folder, [sign(store, index) for index in range(8)], store=store)
    held_out = [sign(store, index, n_rounds=index % 3) for index in range(8, 13)]
    write_trajectories(folder, held_out, store=store, split="validation")
    return folder


@pytest.fixture(scope="module")
def evaluated(split, tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("sft") / "out"
    return output, finetune(split, tiny, output, SHORT.model_copy(update={"eval_every": 3}))


def losses(record, column="loss"):
    return {step["step"]: step[column] for step in record["steps"] if column in step}


def test_evaluations_come_every_so_many_steps_and_after_the_last(evaluated):
    assert sorted(losses(evaluated[1], "eval_loss")) == [3, 6, 7]
    assert evaluated[1]["evaluation"]["phases"][0]["saved_step"] == 7


def test_training_is_that_without_evaluations(evaluated, split, tiny, tmp_path):
    plain = finetune(split, tiny, tmp_path / "plain", SHORT)
    assert losses(evaluated[1]) == losses(plain)
    weights = [load_model(folder).state_dict() for folder in (evaluated[0], tmp_path / "plain")]
    assert all(value.equal(weights[1][name]) for name, value in weights[0].items())
    assert "evaluation" not in plain


def test_the_loss_is_the_mean_over_all_trained_tokens_of_the_held_out_rows(evaluated, split):
    import torch

    from darkroom.train.examples.datasets import open_dataset
    from darkroom.train.examples.encoding import open_reader

    model, reader = load_model(evaluated[0]).eval(), open_reader(evaluated[0])
    total = n_tokens = 0
    for row in open_dataset(split, part="held_out"):
        batch = reader.read([row])
        with torch.no_grad():
            logits = model(**{name: value for name, value in batch.items() if name != "labels"}).logits[0, :-1]
        labels = batch["labels"][0, 1:]
        total += torch.nn.functional.cross_entropy(logits, labels, reduction="sum", ignore_index=-100).item()
        n_tokens += int((labels != -100).sum())
    assert losses(evaluated[1], "eval_loss")[7] == pytest.approx(total / n_tokens, rel=1e-5)


def test_training_stops_after_evaluations_that_are_no_better(split, tiny, tmp_path, capsys):
    """At a learning rate of 0 nothing changes."""
    settings = SftSettings(max_steps=9, batch_size=2, learning_rate=0.0, eval_every=2, early_stop=2)
    record = finetune(split, tiny, tmp_path / "out", settings)
    assert sorted(losses(record, "eval_loss")) == [2, 4, 6]
    assert [step["step"] for step in record["steps"]] == [1, 2, 3, 4, 5, 6]
    assert record["evaluation"]["phases"][0]["stopped_early"]
    assert "stopped: 2 evaluations in sequence are no better" in capsys.readouterr().out


def interrupt(split, tiny, output, settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(split, tiny, output, settings, save_steps=4)


def test_an_interrupted_training_resumes_with_evaluations(split, tiny, tmp_path):
    interrupt(split, tiny, tmp_path / "out", SHORT.model_copy(update={"max_steps": 5}))
    record = finetune(split, tiny, tmp_path / "out", SHORT.model_copy(update={"eval_every": 2, "keep_best": True}))
    assert sorted(losses(record, "eval_loss")) == [6, 7]
    (changes,) = record["resumed_with"]
    assert changes.pop("phases")
    assert changes == {"max_steps": [5, 7], "eval_every": [None, 2], "keep_best": [None, True]}


def test_weights_that_were_not_kept_cannot_be_saved_as_the_best(split, tiny, tmp_path):
    interrupt(split, tiny, tmp_path / "out", SHORT.model_copy(update={"max_steps": 5, "eval_every": 2}))
    with pytest.raises(
        TrainError, match=r"the weights of best-\d were not kept: leave out --keep-best, or use --restart"
    ):
        finetune(split, tiny, tmp_path / "out", SHORT.model_copy(update={"eval_every": 2, "keep_best": True}))


def scripted(monkeypatch, values, seen):
    """Evaluations give ``values`` and keep the weights that they were made of."""

    def measure(trainer, *_, **__):
        state = trainer.model.state_dict()
        seen.append({name: value.clone() for name, value in state.items()})
        return {"eval_loss": values[len(seen) - 1], "eval_mean_token_accuracy": 0.0}

    monkeypatch.setattr("darkroom.train.finetuning.phases.held_out_loss", measure)


def test_the_weights_of_the_best_evaluation_are_saved(split, model, tmp_path, monkeypatch):
    seen = []
    scripted(monkeypatch, [3.0, 1.0, 2.0, 4.0], seen)
    settings = SHORT.model_copy(update={"eval_every": 2, "keep_best": True})
    record = finetune(split, model, tmp_path / "out", settings, save_steps=2)
    saved = load_model(tmp_path / "out").state_dict()
    assert len(seen) == 4
    assert saved.keys() == seen[1].keys()
    assert all(value.equal(saved[name]) for name, value in seen[1].items())
    assert not all(value.equal(saved[name]) for name, value in seen[2].items())
    assert record["evaluation"]["phases"][0]["saved_step"] == 4
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja"} <= names
    assert "training_args.bin" not in names
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == (model / "chat_template.jinja").read_text()


def test_the_adapter_of_the_best_evaluation_is_merged(split, tiny, tmp_path, monkeypatch):
    seen = []
    scripted(monkeypatch, [3.0, 1.0, 2.0, 4.0], seen)
    settings = SHORT.model_copy(update={"eval_every": 2, "keep_best": True, "lora": 4})
    finetune(split, tiny, tmp_path / "out", settings)
    name = "model.language_model.layers.0.self_attn.q_proj"
    (key,) = {key for key in seen[1] if key.endswith("language_model.layers.0.self_attn.q_proj.lora_A.default.weight")}
    at = key.removesuffix("lora_A.default.weight")
    merged = [
        state[f"{at}base_layer.weight"] + 2 * state[f"{at}lora_B.default.weight"] @ state[f"{at}lora_A.default.weight"]
        for state in seen
    ]
    saved = load_model(tmp_path / "out").state_dict()[f"{name}.weight"]
    assert saved.allclose(merged[1], atol=1e-7)
    assert not saved.allclose(merged[3], atol=1e-7)


def test_rows_that_are_trained_on_are_refused(split, tiny, tmp_path, store):
    write_trajectories(tmp_path / "same", [sign(store, index) for index in (2, 20)], store=store)
    settings = SHORT.model_copy(update={"eval_every": 2, "eval_dataset": str(tmp_path / "same")})
    with pytest.raises(TrainError, match="1 of 2 questions to evaluate on are trained on, s2 for one"):
        finetune(split, tiny, tmp_path / "out", settings)


def test_a_dataset_without_held_out_rows_is_refused(dataset, tiny, tmp_path):
    with pytest.raises(TrainError, match=r"no held-out rows .*: name others with --eval-dataset"):
        finetune(dataset, tiny, tmp_path / "out", SHORT.model_copy(update={"eval_every": 2}))


def killed(*given, **kwargs):
    """Training in a process of its own, until SIGKILL."""
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        return
    try:
        finetune(*given, **kwargs)
    finally:
        os._exit(1)


def test_a_killed_training_stops_where_an_uninterrupted_one_does(split, tiny, tmp_path, monkeypatch, capsys):
    """With the same best weights: killed while they are written, then after the stop."""
    values = dict(zip(range(2, 25, 2), [4.0, 3.0, 2.0, 2.5, 2.0, 9.0, 1.0], strict=False))
    monkeypatch.setattr(
        "darkroom.train.finetuning.phases.held_out_loss",
        lambda trainer, *_, **__: {"eval_loss": values[trainer.state.global_step]},
    )
    settings = SftSettings(max_steps=24, batch_size=2, learning_rate=1e-2, eval_every=2, early_stop=3, keep_best=True)
    whole = finetune(split, tiny, tmp_path / "whole", settings, save_steps=4)
    (of_whole,) = whole["evaluation"]["phases"]
    assert (of_whole["best_step"], of_whole["evaluations"], of_whole["stopped_early"]) == (6, 6, True)

    def kill(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    rename = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda path, to: kill() if path.name == ".best-6" else rename(path, to))
        killed(split, tiny, tmp_path / "killed", settings, save_steps=4)
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr("darkroom.train.models.loading.save_checkpoint", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(split, tiny, tmp_path / "killed", settings, save_steps=4)
    assert trained_steps(capsys) == [f"step {step}" for step in range(5, 13)]
    resumed = finetune(split, tiny, tmp_path / "killed", settings, save_steps=4)
    assert trained_steps(capsys) == []  # its last restart point is that of the stop
    assert resumed["evaluation"] == whole["evaluation"]
    assert losses(resumed) == losses(whole)
    weights = [load_model(tmp_path / name).state_dict() for name in ("whole", "killed")]
    assert all(value.equal(weights[1][name]) for name, value in weights[0].items())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".conformance", "killed", "whole"]


def trained_steps(capsys):
    lines = capsys.readouterr().out.splitlines()
    return [line.split("/")[0] for line in lines if line.startswith("step") and "epoch" in line]


def interrupted(*_, **__):
    raise KeyboardInterrupt
