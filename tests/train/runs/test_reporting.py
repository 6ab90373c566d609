import json
import warnings
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from dagster_pipes import PipesContext, encode_param

from darkroom.pipelines.records.digest import digest
from darkroom.train.runs import history
from darkroom.train.runs.history import code_version
from darkroom.train.runs.job import TrainingJob, run_job
from darkroom.train.runs.reporting import reporting
from darkroom.train.runs.trainer_callbacks import StepReporter

CONTEXT = {
    "asset_keys": ["sft_checkpoint"],
    "code_version_by_asset_key": {"sft_checkpoint": None},
    "provenance_by_asset_key": {"sft_checkpoint": None},
    "partition_key": None,
    "partition_key_range": None,
    "partition_time_window": None,
    "run_id": "r",
    "job_name": "j",
    "retry_number": 0,
    "extras": {},
}
STEPS = [{"step": n, "epoch": n / 2, "loss": 4.0 / n} for n in range(1, 5)]


@pytest.fixture
def messages(tmp_path, monkeypatch):
    """The environment that Dagster gives a Pipes process; calls to it are the messages so far."""
    path = tmp_path / "messages"
    path.touch()
    monkeypatch.setenv("DAGSTER_PIPES_CONTEXT", encode_param({"data": CONTEXT}))
    monkeypatch.setenv("DAGSTER_PIPES_MESSAGES", encode_param({"path": str(path)}))
    monkeypatch.setattr(PipesContext, "_instance", None)
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def job(dataset, tiny, tmp_path):
    return TrainingJob("sft", dataset, tiny, tmp_path / "out", {"seed": 0}, column="loss")


def pretend(staging, report):
    (staging.final / "model.safetensors").write_text("weights")
    report.line("step 1/4")
    return STEPS


def test_lines_and_the_result_reach_dagster(job, messages):
    run_job(job, pretend)
    said = messages()
    assert [message["method"] for message in said if message["method"] != "log"] == [
        "opened",
        "report_asset_materialization",
        "closed",
    ]
    assert next(message["params"]["message"] for message in said if message["method"] == "log") == "step 1/4"
    reported = next(m["params"] for m in said if m["method"] == "report_asset_materialization")
    metadata = reported["metadata"]
    assert reported["asset_key"] == "sft_checkpoint"
    assert metadata["final_loss"] == {"raw_value": 1.0, "type": "float"}
    assert metadata["loss_course"]["raw_value"].endswith("4 → 1 (from 1 to 4)")
    assert "| 4 | 2 | 1 |" in metadata["steps_table"]["raw_value"]
    assert metadata["plot"]["raw_value"].startswith("![loss](data:image/png;base64,")
    assert metadata["checkpoint"] == {"raw_value": str(job.output), "type": "path"}
    assert metadata["seconds"]["type"] == "float"
    assert metadata["plots"]["raw_value"].startswith("![all columns](data:image/png;base64,")


def test_a_checkpoint_is_versioned_by_its_inputs_and_says_which_code_and_recipe_made_it(job, messages):
    made = run_job(job, pretend)
    reported = next(m["params"] for m in messages() if m["method"] == "report_asset_materialization")
    assert reported["data_version"] == made["inputs"]["digest"]
    written = json.loads((job.output / "training.json").read_text())
    assert written["recipe"] == {"name": "sft", "digest": digest({"seed": 0})}
    assert written["code"] == asdict(code_version())
    metadata = reported["metadata"]
    assert metadata["git_commit"]["raw_value"] == code_version().in_words
    assert metadata["recipe_digest"]["raw_value"] == digest({"seed": 0})


def test_every_step_reaches_dagster_with_all_its_numbers_and_a_terminal_hears_of_some(messages, capsys):
    with reporting() as report:
        reporter = StepReporter(report, {"loss": "loss"})
        for step in range(1, 101):
            logs = {"loss": 1.0 / step, "epoch": 0.5, "entropy": 0.25, "note": "words", "kl": float("nan")}
            reporter.on_log(None, SimpleNamespace(global_step=step, max_steps=100), None, logs)
    steps = [m["params"]["payload"] for m in messages() if m["method"] == "report_custom_message"]
    assert [step["step"] for step in steps] == list(range(1, 101))
    assert steps[3] == {
        "kind": "step",
        "step": 4,
        "n_steps": 100,
        "said": "step 4/100, epoch 0.50: loss 0.25",
        "metrics": {"loss": 0.25, "epoch": 0.5, "entropy": 0.25},
    }
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_the_end_of_a_training_is_no_step(messages):
    with reporting() as report:
        StepReporter(report, {}).on_log(None, None, None, {"train_runtime": 3.0})
    assert "report_custom_message" not in [message["method"] for message in messages()]


def test_a_run_with_nothing_to_do_reports_the_same_result(job, messages):
    run_job(job, pretend)
    PipesContext._instance = None
    run_job(job, pretend)
    results = [m["params"] for m in messages() if m["method"] == "report_asset_materialization"]
    assert results[0] == results[1]


def test_only_the_first_process_speaks_to_dagster(messages, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with reporting() as report:
        report.line("not said")
        report.materialized({})
    assert messages() == []


def test_without_dagster_nothing_is_said_to_it(job, capsys, monkeypatch):
    monkeypatch.delenv("DAGSTER_PIPES_CONTEXT", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_job(job, pretend)
    assert "step 1/4" in capsys.readouterr().out


def test_a_long_table_is_thinned_and_keeps_the_last_step():
    steps = [{"step": n, "loss": 1.0} for n in range(1, 1001)]
    lines = history.step_table(steps).splitlines()
    assert len(lines) <= 2 + 31
    assert lines[-1] == "| 1000 | 1 |"
