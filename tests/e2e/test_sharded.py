"""Two processes over gloo on a CPU, whole weights (DDP) and sharded ones (FSDP 2): SFT, GRPO and evaluation.

Both trainings are evaluated on three rows after each step, of which one process has two, the other one.
In GRPO the rollouts of the first process take three turns and those of the second one: without common turns the sharded
training would wait for ever. Half of the rows have no image.
"""

import json
import subprocess
import sys

import pytest

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.storage.images import ImageStore
from tests.train.conftest import mixed_pairs, sign, sum_without_image, text_round
from tests.train.scripted import FIRST_TURNS, SECOND_TURN

CROPS, ADDS, _, GUESSES = FIRST_TURNS
TURNS = [[[CROPS, ADDS, SECOND_TURN], [GUESSES]], [[GUESSES], [f"<think>{SECOND_TURN}"]]]
SFT = ["--batch-size", "4", "--learning-rate", "1e-2", "--max-steps", "3", "--save-steps", "1"]
GRPO = ["--generations", "2", "--batch-size", "2", "--max-steps", "2", "--max-tokens", "400"]
GRPO += ["--learning-rate", "1e-2", "--save-steps", "1"]
EVALUATED = ["--eval-every", "1", "--keep-best"]
CLOSE = 1e-3

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "killed"])
def folder(request, tmp_path_factory):
    """All programs have run here, one after the other, in processes that import the libraries once; or three of them
    were killed first."""
    from darkroom.train.tiny import build, dataset_texts

    folder = tmp_path_factory.mktemp("sharded")
    store = ImageStore(str(folder / "store"))
    write_trajectories(folder / "mixed", mixed_pairs(store), store=store)
    four = [sign(store, 0), sum_without_image(7), sign(store, 1), text_round(store, 6)]
    write_trajectories(folder / "four", four, store=store)
    three = [sign(store, 8), sum_without_image(9), sign(store, 10)]
    write_trajectories(folder / "held", three, store=store)
    build(folder / "tiny", texts=dataset_texts(folder / "mixed"))
    run_all(folder, planned(folder, with_kills=request.param))
    return folder


def run_all(folder, runs):
    (folder / "runs.json").write_text(json.dumps(runs))
    command = [sys.executable, "-m", "tests.e2e.ranks", str(folder / "runs.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    (folder / "told.txt").write_text(done.stdout)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"statuses"')]
    assert len(results) == len(runs), done.stderr
    for run, result in zip(runs, results, strict=True):
        if "killed_at" in run:
            assert result["statuses"][1] == -9
            assert result["statuses"][0] != 0
        else:
            assert set(result["statuses"]) == {0}, done.stdout + done.stderr


def planned(folder, *, with_kills):
    two, evaluation = {"processes": 2}, ["--split", "all", "--max-tokens", "16"]
    scripted = {**two, "turns": TURNS, "dataset": "four"}
    runs = [
        run(folder, "sft", SFT, "one"),
        run(folder, "sft", SFT, "two", **two, sharded=True, killed_at=".two.part/**/checkpoint-1/trainer_state.json"),
        run(folder, "sft", SFT, "two", **two, sharded=True),
        run(folder, "grpo", GRPO, "ddp", **scripted),
        run(
            folder,
            "grpo",
            GRPO,
            "fsdp",
            **scripted,
            sharded=True,
            killed_at=".fsdp.part/**/checkpoint-1/trainer_state.json",
        ),
        run(folder, "grpo", GRPO, "fsdp", **scripted, sharded=True),
        run(folder, "evaluate", evaluation, "report1"),
        run(folder, "evaluate", evaluation, "report2", **two, killed_at="home_report2/ledger.sqlite"),
        run(folder, "evaluate", evaluation, "report2", **two),
    ]
    return [run for run in runs if with_kills or "killed_at" not in run]


def run(folder, program, words, name, *, dataset="mixed", **launch):
    given = ["--dataset", folder / dataset, "--model", folder / "tiny", *words, "--output", folder / name]
    given += [*EVALUATED, "--eval-dataset", folder / "held"] if program != "evaluate" else []
    return {"program": program, "words": [str(word) for word in given], "home": str(folder / f"home_{name}"), **launch}


def steps(folder, name, *columns):
    record = json.loads((folder / name / "training.json").read_text())
    return [[step[column] for column in columns] for step in record["steps"]]


def test_sharded_sft_takes_the_steps_of_one_process(folder):
    for one, two in zip(steps(folder, "one", "loss"), steps(folder, "two", "loss"), strict=True):
        assert two == pytest.approx(one, rel=CLOSE)


def test_sharded_grpo_takes_the_steps_of_whole_weights(folder):
    columns = ("loss", "reward", "grad_norm", "turns", "images_shown")
    whole, sharded = (steps(folder, name, *columns) for name in ("ddp", "fsdp"))
    assert len(whole) == len(sharded) == 2
    for one, other in zip(whole, sharded, strict=True):
        assert other == pytest.approx(one, rel=CLOSE)
    assert any(grad_norm > 0 for _, _, grad_norm, _, _ in whole)
    assert any(images > 0 for *_, images in whole)
    assert all(turns == 1.5 for _, _, _, turns, _ in whole)  # three, one; one, one


def test_held_out_rows_are_divided_among_processes_and_the_best_weights_are_saved(folder):
    for one, two in zip(steps(folder, "one", "eval_loss"), steps(folder, "two", "eval_loss"), strict=True):
        assert two == pytest.approx(one, rel=CLOSE)
    columns = ("eval_accuracy", "eval_tool_use", "eval_broken_rate")
    # the first process crops and says red of a red sign, and blue of a sum; the second one says blue of a blue sign
    assert steps(folder, "fsdp", *columns) == steps(folder, "ddp", *columns) == [[2 / 3, 1 / 3, 0.0]] * 2
    for name in ("one", "two", "ddp", "fsdp"):
        record = json.loads((folder / name / "training.json").read_text())
        (phase,) = record["evaluation"]["phases"]
        assert phase["saved_step"] == phase["best_step"]
        assert phase["evaluations"] == len(record["steps"])
    assert best_losses(folder, "two") == pytest.approx(best_losses(folder, "one"), rel=CLOSE)


def best_losses(folder, name):
    """The held-out loss of the saved weights, computed anew."""
    import torch

    from darkroom.train.examples.datasets import open_dataset
    from darkroom.train.examples.encoding import open_reader
    from darkroom.train.models.loading import load_model

    model, reader = load_model(folder / name).eval(), open_reader(folder / name)
    batches = [reader.read([row]) for row in open_dataset(folder / "held")]
    with torch.no_grad():
        return [model(**batch).loss.item() for batch in batches]


def test_what_is_launched_is_told(folder):
    told = (folder / "told.txt").read_text()
    assert "2 processes, weights sharded" in told
    assert "2 processes, all weights in each" in told


def test_an_evaluation_in_two_processes_is_that_of_one(folder):
    one, two = (json.loads((folder / name / "report.json").read_text()) for name in ("report1", "report2"))
    assert two["results"] == one["results"]
    assert two["n_failed"] == one["n_failed"] == 0
