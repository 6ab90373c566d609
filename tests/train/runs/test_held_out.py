"""The decisions of evaluations during training: which is the best, and whether to stop."""

import math
from types import SimpleNamespace

import pytest

from darkroom.train.finetuning.settings import SftSettings
from darkroom.train.rl.methods import settings_of
from darkroom.train.runs import TrainError
from darkroom.train.runs.held_out import (
    METRICS,
    Evaluation,
    Evaluations,
    HeldOutSettings,
    evaluation_record,
    shares,
    spread,
)
from darkroom.train.runs.job import with_rows


def evaluations(*values, larger=True):
    return Evaluations(tuple(Evaluation(10 * n, value) for n, value in enumerate(values, 1)), larger)


@pytest.mark.parametrize(
    ("values", "larger", "best", "since"),
    [
        ((0.1, 0.3, 0.2), True, (20, 0.3), 1),
        ((0.1, 0.3, 0.2), False, (10, 0.1), 2),
        ((0.3, 0.3, 0.3), True, (10, 0.3), 2),  # the same is no improvement
        ((math.nan, 0.2), False, (20, 0.2), 0),
        ((0.2, math.nan, math.nan), False, (10, 0.2), 2),
        ((math.nan,), True, None, 1),
        ((), True, None, 0),
    ],
)
def test_the_best_is_the_first_of_the_best_numbers(values, larger, best, since):
    done = evaluations(*values, larger=larger)
    assert done.best == best
    assert done.n_without_improvement == since


@pytest.mark.parametrize(
    ("patience", "values", "ends"),
    [
        (0, (0.3, 0.2, 0.1), False),
        (2, (0.3, 0.2), False),
        (2, (0.3, 0.2, 0.3), True),
        (2, (0.3, 0.2, 0.4, 0.4), False),
        (1, (0.3,), False),
    ],
)
def test_training_ends_after_so_many_evaluations_without_an_improvement(patience, values, ends):
    settings = HeldOutSettings(eval_every=10, early_stop=patience)
    assert settings.ends(evaluations(*values)) is ends


def test_evaluations_are_due_at_multiples_and_after_the_last_step():
    settings = HeldOutSettings(eval_every=4)
    assert [step for step in range(11) if settings.is_due(step, 10)] == [4, 8, 10]
    assert not any(HeldOutSettings().is_due(step, 10) for step in range(11))


def test_evaluations_are_read_from_the_log_that_a_checkpoint_holds():
    log = [{"loss": 1.0, "step": 1}, {"eval_loss": 2.0, "step": 2}, {"train_loss": 1.0, "step": 2}]
    assert Evaluations.of_log(log, METRICS["sft"]).done == ((2, 2.0),)


@pytest.mark.parametrize("given", [{"keep_best": True}, {"early_stop": 2}, {"eval_limit": 5}, {"eval_dataset": "x"}])
def test_settings_without_effect_are_refused(given):
    (name,) = given
    with pytest.raises(TrainError, match=f"--{name.replace('_', '-')} needs evaluations: set --eval-every"):
        SftSettings(**given)


def test_checkpoints_without_evaluations_have_the_record_of_before():
    records = (SftSettings().record, settings_of("thyme").record)
    assert not any(name.startswith("eval") or name in ("early_stop", "keep_best") for r in records for name in r)
    assert SftSettings(eval_every=5, keep_best=True).record["keep_best"] is True
    assert settings_of("thyme", eval_every=5).record["eval_every"] == 5


def test_the_record_of_a_checkpoint_names_the_step_whose_weights_it_has():
    steps = [
        {"step": 1, "phase": "images", "eval_loss": 3.0},
        {"step": 2, "phase": "images", "eval_loss": 2.0},
        {"step": 3, "phase": "images", "eval_loss": 2.5},
        {"step": 4, "phase": "maths"},
        {"step": 5, "phase": "maths", "eval_loss": 9.0},
    ]
    kept = evaluation_record(steps, {"keep_best": True, "early_stop": 1}, "sft")
    images, maths = kept["phases"]
    assert (images["best_step"], images["best_value"], images["saved_step"], images["stopped_early"]) == (2, 2, 2, True)
    assert (maths["best_step"], maths["evaluations"], maths["stopped_early"]) == (5, 1, False)
    last = evaluation_record(steps, {}, "sft")
    assert [phase["saved_step"] for phase in last["phases"]] == [3, 5]
    assert (kept["saved"], last["saved"]) == ("best", "last")


def test_rows_are_spread_evenly():
    assert spread(10, None) == list(range(10))
    assert spread(10, 4) == [0, 2, 5, 7]
    assert spread(3, 9) == [0, 1, 2]


@pytest.mark.parametrize(("n_rows", "size", "n_processes"), [(7, 2, 2), (1, 4, 3), (8, 2, 2), (5, 1, 1)])
def test_every_row_counts_once_and_all_processes_make_as_many_passes(n_rows, size, n_processes):
    processes = [SimpleNamespace(process_index=n, num_processes=n_processes) for n in range(n_processes)]
    planned = [shares(n_rows, size, process) for process in processes]
    assert len({len(passes) for passes in planned}) == 1
    assert all(share.rows for passes in planned for share in passes)
    counted = sorted(row for passes in planned for share in passes if share.counts for row in share.rows)
    assert counted == list(range(n_rows))


def test_rows_to_evaluate_on_are_an_input_by_their_content_not_their_folder(tmp_path):
    for name, content in (("one", b"a"), ("two", b"a"), ("three", b"b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.parquet").write_bytes(content)
    one, two, three = (
        with_rows({"eval_every": 2, "eval_dataset": str(tmp_path / name)}) for name in ("one", "two", "three")
    )
    assert one == two != three
    assert with_rows({"eval_every": 2}) == {"eval_every": 2}
    with pytest.raises(TrainError, match=r"no dataset folder .*--eval-dataset names a folder"):
        with_rows({"eval_dataset": str(tmp_path / "none")})
